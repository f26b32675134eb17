"""Accuracy over time: batches go into a store, windows are estimated, late labels are joined, alarms are raised.

:class:`leadline.monitor.monitor.Monitor` is the door. What it keeps is described in :mod:`leadline.monitor.schema`.
"""

from importlib.util import find_spec

from leadline.errors import InputError

if find_spec("sqlalchemy") is None:
    raise InputError("the monitor needs SQLAlchemy, which is not installed; run pip install 'leadline[monitor]'.")
