"""The kinds of channels: one module each, and one line each in :mod:`leadline.monitor.notifications.kinds.table`."""
