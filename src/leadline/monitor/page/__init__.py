"""The monitor's page: one HTML file with the accuracy of every series over time."""

from leadline.monitor.page.render import render_page

__all__ = ["render_page"]
