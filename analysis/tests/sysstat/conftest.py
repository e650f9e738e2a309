import sys
from pathlib import Path

# What tests and the fuzzer share; pytest's importlib mode does not see siblings.
sys.path.insert(0, str(Path(__file__).parent))
