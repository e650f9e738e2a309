"""The report of a sweep: one self-contained page, its Markdown twin, figures and tables."""

from ntier_analysis.report.page import write_report

__all__ = ["write_report"]
