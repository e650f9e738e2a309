"""Synthetic sweeps of known truth and the score of the detector on them (docs/detector.md)."""
