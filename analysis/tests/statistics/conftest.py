import sys
from pathlib import Path

# Coverage of the intervals is simulated by a program of the bench.
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
