"""Figures and reports; the only part that needs matplotlib (extra ``report``)."""
