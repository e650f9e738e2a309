"""Measurements that some other system made -> store: CSV tables, or the files of JMeter and sysstat."""

from ntier_analysis.importing.folder import import_folder
from ntier_analysis.importing.jmeter import Run, import_runs

__all__ = ["Run", "import_folder", "import_runs"]
