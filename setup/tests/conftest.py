"""The programs of setup/ are not a package: their folders are put on the path."""

import sys
from pathlib import Path

SETUP = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(SETUP), str(SETUP / "images")]
