"""Files of sysstat's collector (`sadc`, `sar -o`), read without sysstat: binary -> named columns."""

from ntier_analysis.sysstat.activities import NAMES
from ntier_analysis.sysstat.reader import SaFile, Table, is_sa, read

__all__ = ["NAMES", "SaFile", "Table", "is_sa", "read"]
