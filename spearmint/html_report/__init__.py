"""The report of a search: an HTML page that opens offline, and its plots as PNG files."""

from __future__ import annotations

from spearmint.html_report.live import live_page
from spearmint.html_report.write import REPORT_FILES, write_report

__all__ = ["REPORT_FILES", "live_page", "write_report"]
