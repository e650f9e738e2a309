import sys
from pathlib import Path

# The simulator of known limits lives with the bench that scores the detector.
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
