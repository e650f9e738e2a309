import sys
from pathlib import Path

# The families of known truth live with the bench that scores the verdicts.
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
