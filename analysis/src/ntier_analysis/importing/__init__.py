"""Measurements that some other system made -> store: CSV tables, or the files of load generators, sysstat and
Prometheus."""

from ntier_analysis.importing.folder import import_folder
from ntier_analysis.importing.run import Run
from ntier_analysis.importing.runs import import_runs

__all__ = ["Run", "import_folder", "import_runs"]
