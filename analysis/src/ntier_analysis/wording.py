"""Numbers in sentences. Whoever prints a count of things uses these, so that nobody reads of "1 trials"."""

from __future__ import annotations


def counted(n: float, noun: str) -> str:
    """`1 trial`, `13 trials`, `0.2 cores`, `2 topologies`. `noun`: in the singular, with a regular plural."""
    number = f"{n:g}" if isinstance(n, float) else n
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number} {noun if n == 1 else plural}"


def some_are(n: int, of: int, noun: str) -> str:
    """`1 of 7 trials is`, `3 of 7 trials are`."""
    return f"{n} of {counted(of, noun)} {'is' if n == 1 else 'are'}"
