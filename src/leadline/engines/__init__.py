"""The same estimate over data of any size: streamed from files (Arrow), on a cluster (Spark), inside a service.

All engines do one thing: they reduce blocks of rows to sums, by group, and add the sums up
(:mod:`leadline.estimators.groups`). They differ in where the blocks come from and where the work is done.
"""

ENGINES = ("arrow", "spark")  # streamed through this machine, or on a cluster
