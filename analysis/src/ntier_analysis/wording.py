"""Numbers in sentences. Whoever prints a count of things uses these, so that nobody reads of "1 trials"."""

from __future__ import annotations


def counted(n: float, noun: str) -> str:
    """`1 trial`, `13 trials`, `0.2 cores`. `noun`: in the singular, with a regular plural."""
    number = f"{n:g}" if isinstance(n, float) else n
    return f"{number} {noun}" if n == 1 else f"{number} {noun}s"


def some_are(n: int, of: int, noun: str) -> str:
    """`1 of 7 trials is`, `3 of 7 trials are`."""
    return f"{n} of {counted(of, noun)} {'is' if n == 1 else 'are'}"
