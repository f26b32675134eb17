"""Accuracy over time: batches go into a store, windows are estimated, late labels are joined, alarms are raised.

:class:`leadline.monitor.monitor.Monitor` is the door. What it keeps is described in :mod:`leadline.monitor.schema`.
"""
