"""The report of a sweep: one self-contained page, its Markdown twin, figures and tables."""

from ntier_analysis.report.page import kept_report, write_report

__all__ = ["kept_report", "write_report"]
