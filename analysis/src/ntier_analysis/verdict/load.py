"""A trial's load and answer, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ntier_analysis.contracts.implied import TIERS, USERS
from ntier_analysis.contracts.system import NOT_TIERS, LoadModel

COUNTS = 0.05
"""Share of the throughput that counts. Waiting or standing still that costs less is no limit; more of a resource that
would bring less is no relief; a throughput that falls by less is level. The labels of both families of known truth ask
for this gain (bench/detector/truth.py, bench/queueing/relief.py)."""

USED_UP_PCT = 100 / (1 + COUNTS)
"""Mean utilization from which on throughput cannot grow by what counts (utilization law)."""

SETTLES = 0.5
"""A load at which an interaction takes this share of the run or more, by Little's law N/X - Z, has not settled: most of
what the run serves was asked for before it, and the mean of the answers that came is too small. Measured on PostgreSQL:
1,800 users were served 10/s, so an answer takes 170 s; those that came in a run of 40 s took 15 s in the mean."""

UNMET = 0.15
"""Share of the users whom a load's answers do not account for (Little's law: X (Z + R) of N), from which on it has not
settled either: requests pile up in front of something, which need not be what limits in the long run. Settled loads
miss up to 0.14, by the users that are drawn and by what is pending at the end (simulated: bench/queueing)."""

UNFINISHED = 2.0
"""Response times before the last answer: in that time, interactions that never ended may be missing."""
MOSTLY = 0.5
"""Share of the run that must be known to tell when users wait."""

NO_PAUSES = np.empty((0, 2))


@dataclass(frozen=True)
class Load:
    """One trial's load and answer. `users`, `users_real`: those who think, or workers that do a fixed amount of work;
    `think_s` is 0 for these, NaN if it is not known; `think_measured_s`: what users thought, or workers
    paused by themselves, per interaction. `value`: of the sweep's `factor`, in `unit`; NaN for users.
    `offered_per_s`, `growth_per_s`, `growth_error_per_s`: interactions begun per second of an open load, by how many
    more are under way with each second, and the standard error of that (statistics/backlog.py). `response_s` is the
    mean of the successes, `response_error_s` its standard error (NaN if unknown); `pending` interactions had no answer
    by the end of the run; `rates`: throughput of equal parts of the run; `done_s`: when each success was complete, None
    without single interactions; `spans`: (n, 2) beginnings and ends of all interactions, None likewise; `pauses`: (n,
    2) beginnings and ends of spans in which the system stood still."""

    trial: str
    users: int
    users_real: float
    throughput_per_s: float
    response_s: float
    think_s: float
    start_s: float
    end_s: float
    valid: bool
    invalid_reasons: str = ""
    response_error_s: float = float("nan")
    pending: int = 0
    rates: np.ndarray | None = None
    think_measured_s: float = float("nan")
    done_s: np.ndarray | None = field(default=None, repr=False)
    spans: np.ndarray | None = field(default=None, repr=False)
    pauses: np.ndarray = field(default_factory=lambda: NO_PAUSES, repr=False)
    model: LoadModel = LoadModel.CLOSED
    factor: str = USERS
    unit: str = ""
    value: float = float("nan")
    offered_per_s: float = float("nan")
    growth_per_s: float = float("nan")
    growth_error_per_s: float = float("nan")

    @property
    def by_users(self) -> bool:
        """Whether the number of users (or workers) is what the sweep changes."""
        return self.factor == USERS

    @property
    def level(self) -> float:
        """What the loads of a sweep are told apart by: users, or the factor's value. Repetitions have it in common."""
        return float(self.users) if self.by_users or not np.isfinite(self.value) else self.value

    @property
    def amount(self) -> float:
        """How much is asked of the system: users or workers, or arrivals per second."""
        return self.offered_per_s if self.model is LoadModel.OPEN else float(self.users_real)

    @property
    def who(self) -> str:
        """Who asks, in words."""
        return self.model.who

    @property
    def named(self) -> str:
        """The load in words: `300 users`, `sleep_s 0.5 s`."""
        if self.by_users or not np.isfinite(self.value):
            return f"{self.users} {self.who}"
        return f"{self.factor} {self.value:g} {self.unit}".rstrip()

    def lost(self, base_s: float) -> float:
        """Share of the throughput lost by waiting: 1 - (Z + R0) / (Z + R), R0 = response time at the lowest load.

        By Little's law this is 1 - X / (N / (Z + R0)), but without the noise of the drawn think times. Z of work is
        what its workers paused by themselves. An open load loses the arrivals that are not served: the growth of the
        backlog."""
        if self.model is LoadModel.OPEN:
            return max(0.0, self.growth_per_s / self.offered_per_s) if self.offered_per_s > 0 else 0.0
        return max(0.0, (self.response_s - base_s) / (self.alone_s + self.response_s))

    @property
    def paused_s(self) -> float:
        """What a worker paused by itself per interaction, s; 0 if nobody counted."""
        return self.think_measured_s if self.model is LoadModel.WORK and np.isfinite(self.think_measured_s) else 0.0

    @property
    def alone_s(self) -> float:
        """Z: what a user or a worker does by itself per interaction, s."""
        return self.think_s + self.paused_s

    @property
    def settled(self) -> bool:
        """Whether the run is long enough for what it measures."""
        if self.model is LoadModel.OPEN:  # it never settles beyond the limit, and the backlog says so
            return True
        if not self.throughput_per_s > 0:
            return False
        answer_s = self.users_real / self.throughput_per_s - self.alone_s
        return answer_s < SETTLES * (self.end_s - self.start_s)

    @property
    def unmet(self) -> float:
        """Share of the users whom the answers do not account for, by Little's law: 1 - X (Z + R) / N, with Z of work
        as in `lost`. Arrivals at a rate have no users to account for: 0."""
        if self.model is LoadModel.OPEN:
            return 0.0
        return 1 - self.throughput_per_s * (self.alone_s + self.response_s) / self.users_real

    @property
    def accounted(self) -> bool:
        """Whether the answers account for the users."""
        return self.unmet < UNMET

    @property
    def piling(self) -> float:
        """Share of the users, or of the arrivals, whose requests pile up in the run. Work never does."""
        if self.model is LoadModel.WORK:
            return 0.0
        return self.lost(0.0) if self.model is LoadModel.OPEN else self.unmet

    @property
    def piled_up(self) -> float:
        """Interactions that were begun and not completed, against those completed in the run: the users whom the
        answers do not account for."""
        if self.model is not LoadModel.CLOSED or not self.throughput_per_s > 0:
            return 0.0
        return max(0.0, self.unmet) * self.users_real / (self.throughput_per_s * (self.end_s - self.start_s))

    @property
    def paused(self) -> float:
        """Share of the run in pauses. A system that stands still now and then is as slow at the lowest load as at
        others: its response time there hides what is lost."""
        return float(np.diff(self.pauses).sum() / (self.end_s - self.start_s)) if len(self.pauses) else 0.0

    def users_wait(self, base_s: float, cells: int) -> np.ndarray:
        """(cells,) of 1.0, 0.0 or NaN (unknown) over equal parts of the run: whether so many users wait that it costs
        COUNTS of the throughput. Without single interactions, and where waiting is the rule, all 1.0.

        By Little's law N R0 / (Z + R0) users are in the system if none waits; the others that are in it wait. Near the
        end of what is known, interactions that had not ended are missing: there, those that did end tell only that
        users wait, where they alone are enough, and never that none does."""
        if self.model is not LoadModel.CLOSED or self.spans is None or not len(self.spans):
            return np.ones(cells)
        at = self.start_s + (np.arange(cells) + 0.5) * (self.end_s - self.start_s) / cells
        begun, ended = np.sort(self.spans[:, 0]), np.sort(self.spans[:, 1])
        inside = np.searchsorted(begun, at) - np.searchsorted(ended, at)
        waiting = inside / self.users_real - base_s / (self.think_s + base_s) >= COUNTS
        known = waiting | (at <= ended[-1] - UNFINISHED * self.response_s)
        if known.mean() < MOSTLY:
            return np.ones(cells)
        return np.where(known, waiting.astype(float), np.nan)

    def cost(self, base_s: float) -> float:
        """Share of the throughput that waiting or pauses cost; from COUNTS on the cause is asked for. (What an open
        system stands still it may make good after.)"""
        lost = self.lost(base_s)
        return lost if self.model is LoadModel.OPEN else max(lost, self.paused)


@dataclass(frozen=True)
class Bottleneck:
    tier: str
    resource: str
    nodes: tuple[str, ...]
    saturation: float
    low: float
    high: float
    item: str = ""


@dataclass
class Verdict:
    """`verdict`: none, single, multi, hidden or unknown; `kind`: stable, simultaneous, alternating or ''; `explained`:
    share of the time in which users waited that had one of the bottlenecks saturated; `stopped`: tiers that stood still
    at times; `perhaps`: resources that take turns, unless one of them limits alone; `held_up`: something that nobody
    measured held up users for much of their time, and may be no limit of other loads (both of a verdict `unknown`)."""

    verdict: str
    kind: str = ""
    bottlenecks: list[Bottleneck] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    lost: float = float("nan")
    explained: float = float("nan")
    stopped: tuple[str, ...] = ()
    perhaps: list[Bottleneck] = field(default_factory=list)
    held_up: bool = False


def is_server(tier: str) -> bool:
    return tier not in NOT_TIERS


def depth(tier: str, order: tuple[str, ...] = TIERS) -> float:
    """Place in the order from the client inwards; NaN (neither deeper nor less deep) if the order does not say."""
    return order.index(tier) if tier in order else float("nan")
