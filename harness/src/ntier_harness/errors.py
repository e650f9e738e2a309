"""Errors a person sees, and the exit code each one becomes (contracts: 1 failed, 2 request wrong, 130 interrupted)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RequestError(Exception):
    """The request was wrong; nothing was touched. Exit code 2. Several arguments: as many errors, a line for each."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.args))


class Unanswered(RequestError):
    """Nothing can be made on this target at present, whatever is asked for. Exit code 2."""


class WorkError(Exception):
    """Something failed while working; the ledger keeps what was done. Exit code 1."""


class BudgetReached(WorkError):
    """The sweep ended because it would have cost more than it may. Exit code 1."""


NO_NODES = "the nodes could not be made"
"""Note of an error that ended a sweep before it had nodes."""


class Interrupted(Exception):
    """The person asked to stop; the same command goes on later. Exit code 130."""


def needs_root(place: object) -> RequestError:
    """Of a state that root's set-up made, for who may not look into it."""
    return RequestError(f"privileges: {place} cannot be read: needs root, as the set-up did; try with sudo")


def unknown(option: str, value: object, allowed: Iterable[object], more: str = "") -> RequestError:
    """An error that names the option, its value, what is allowed and, if there is one, the nearest allowed name."""
    names = [str(a) for a in allowed]
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return RequestError(f"{option}: {str(value)!r} is unknown{hint}; allowed are {', '.join(names) or 'none'}{more}")
