"""What a log of Gatling says, in whichever form it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ntier_analysis.errors import DataError
from ntier_analysis.parsers.generated import Generated, by_completion, steps

MOST = 20_000_000
"""Requests that are held at most."""
EPOCH_MS = (1e11, 1e14)
"""1973 to 5138 in milliseconds since 1970."""


@dataclass
class Events:
    """Collects users and requests of the log `path`; all times in ms since 1970."""

    path: Path
    notes: list[str] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _times: list[tuple[float, float]] = field(default_factory=list)
    _ok: list[bool] = field(default_factory=list)
    _users: list[tuple[float, int]] = field(default_factory=list)

    def user(self, t_ms: float, begins: bool) -> None:
        self._users.append((t_ms, 1 if begins else -1))

    def request(self, groups: list[str], name: str, start_ms: float, end_ms: float, ok: bool, place: str) -> None:
        """Raises DataError naming `place`."""
        if end_ms < start_ms:
            raise DataError(f"{place}: end is {end_ms:.0f}, expected at least the start, {start_ms:.0f}")
        if not name:
            raise DataError(f"{place}: name is empty")
        self._names.append("/".join(filter(None, [*groups, name])))
        self._times.append((start_ms, end_ms))
        self._ok.append(ok)
        if len(self._names) > MOST:
            raise DataError(f"{place}: more than {MOST:,} requests; import it in parts")

    def generated(self) -> Generated:
        """Raises DataError if there was no request."""
        if not self._names:
            raise DataError(f"{self.path}: no requests")
        span = np.array(self._times) / 1000
        response = np.round(1000 * (span[:, 1] - span[:, 0]))
        frame = by_completion(span[:, 1], response, np.array(self._names, dtype=object), np.array(self._ok))
        changes = np.array(sorted(self._users), dtype=float).reshape(-1, 2)
        active, last_ms = changes[:, 1].cumsum(), 1000 * span[:, 1].max()
        if len(changes) and last_ms > changes[-1, 0]:  # killed: those who were there stayed until the end
            changes, active = np.append(changes, [[last_ms, 0]], axis=0), np.append(active, active[-1])
        notes = ("whether users were injected closed or open: Gatling does not write it", *self.notes)
        return Generated(frame, steps(changes[:, 0] / 1000, active), notes=notes)
