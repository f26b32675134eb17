"""The fault campaign: what is read, parsed or estimated, attacked until something gives way.

``python -m fuzz --minutes 10`` runs all of it; docs/robustness.md says what is promised and what was found.
"""
