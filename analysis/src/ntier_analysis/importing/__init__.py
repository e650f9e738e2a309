"""Measurements that some other system made -> store: CSV tables, or the files of load generators, sysstat and
Prometheus."""

from ntier_analysis.importing.folder import import_folder
from ntier_analysis.importing.runs import Run, import_runs

__all__ = ["Run", "import_folder", "import_runs"]
