import sys
from pathlib import Path

# The synthetic trials are shared by several folders of tests; pytest's importlib mode does not see siblings.
sys.path.insert(0, str(Path(__file__).parent))
