"""Validity checks of a trial: one function per check, gathered in a registry (docs/validity.md)."""
