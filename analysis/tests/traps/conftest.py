import sys
from pathlib import Path

# The simulator of known limits lives with the bench that scores the detector; pytest's importlib mode does not see
# modules beside a test.
sys.path[:0] = [str(Path(__file__).parents[2] / "bench"), str(Path(__file__).parent)]
