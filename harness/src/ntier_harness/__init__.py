"""Plans, runs and records trials: topology in, `results/raw` out."""

__version__ = "0.1.0"
