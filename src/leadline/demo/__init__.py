"""Examples that need no data of one's own: every method once, and the monitor over a year."""
