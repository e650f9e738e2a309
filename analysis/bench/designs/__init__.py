"""Designs of an experiment that finds a maximum and what limits it, compared on systems of known truth."""
