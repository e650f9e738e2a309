"""Spec -> ordered trials, with what they will cost. Values only."""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass, replace

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.wording import counted

from ntier_harness.errors import RequestError
from ntier_harness.request import number
from ntier_harness.spec import SEARCH_LEAST, SEARCH_MOST, USERS, Spec

# Per trial beside its phases, and of that per node and client: 5.9 s (5.0 to 6.5, 4 trials) with five of them; 8.9 s
# (8.4 to 9.5, 10 trials) with nine and ten, before the stop became shorter (docs/decisions/per-trial-path.md).
OVERHEAD_S, OVERHEAD_NODE_S = 3.5, 0.5
JUDGE_S = 2.5  # a search waits for outcome and decision: 1.5 to 2.9 s with nine and ten nodes and clients
UP_S, DEPLOY_S, REPORT_S = 20.0, 45.0, 15.0
ATTEMPTS_MOST = 20  # that a command or the file of a campaign may ask for
INSTALL_S = 900.0
"""Instead of UP_S and DEPLOY_S, until bare machines are up, installed and calibrated. Not measured on rented ones; five
bare containers take minutes."""
# A round lasts as long as the system says (load.warm_up_s): caches fill, and the JIT compilers of JVMs settle.
# Rounds, least and most, by the shortest run phase that needs them. Each leaves situations of some 200 sessions; code
# that seldom runs is compiled late. Runs below 30 s try the path, and below 15 s they have no interval at all.
WARM_ROUNDS = {40.0: (2, 10), 30.0: (2, 4), 15.0: (1, 3), 0.0: (1, 1)}
USUAL_ROUNDS = {10: 3, 4: 3, 3: 2, 1: 1}
"""Of at most so many: two to four in 14 deployments of one to three databases, runs of 40 s."""
WARM_START_S = 8.0  # of the driver, in each round
MINUTES = (1, 10_000)  # a week
NODE_S = 1.0  # a further node, up with SSH: five are up in 3 to 4 s
# Bytes per second, compressed: sysstat's own file 240 and its JSON 430, cgroup samples 10 Hz 300, status counters 100.
NODE_BYTES_PER_S = 1_100
# Compressed bytes per interaction: 10 of the JTL, 20 of the think times.
INTERACTION_BYTES = 30
TRIAL_BYTES = 400_000  # logs, facts, manifest


@dataclass(frozen=True)
class Trial:
    """One run to make: the `rep`-th at `users` nominal users, or at a value of another factor."""

    users: int
    rep: int
    seed: int
    factor: str = USERS
    value: float | None = None
    """Of another factor than the users."""
    above: int | None = None
    """Most nominal users before the run, if some leave during the ramp-up."""

    @property
    def key(self) -> str:
        """`u01000.r01`, `u01000.above08000.r01`, `sleep_s-0_5.r01`."""
        if self.value is None:
            before = "" if self.above is None else f".above{self.above:05d}"
            return f"u{self.users:05d}{before}.r{self.rep:02d}"
        number = f"{self.value:.12g}" if self.value % 1 else str(int(self.value))
        return f"{self.factor}-{number.replace('.', '_')}.r{self.rep:02d}"

    @property
    def load(self) -> str:
        """What distinguishes this trial from the others of the sweep, as text."""
        if self.value is not None:
            return f"{self.factor} {self.value:g}"
        return counted(self.users, "user") + (f" after {self.above}" if self.above else "")

    def attempt_key(self, attempt: int) -> str:
        return self.key if attempt == 1 else f"{self.key}.a{attempt}"

    def drawn_anew(self, times: int) -> Trial:
        """This trial with other random walks, after `times` attempts that failed or were invalid. With the same walks,
        a mix that is off by chance would be off in each attempt. An interrupted attempt does not count: the next one
        has the same walks."""
        return replace(self, seed=seed_of(f"{self.seed}/{times}")) if times else self


def trial(spec: Spec, point: float, rep: int) -> Trial:
    """The `rep`-th trial at a value of the sweep's factor. All values of another factor than the users have the same
    walks."""
    if spec.factor == USERS:
        return Trial(int(point), rep, trial_seed(spec.seed, int(point), rep))
    users = spec.users[0]
    return Trial(users, rep, trial_seed(spec.seed, users, rep), spec.factor, point)


def trial_seed(seed: int, users: int, rep: int) -> int:
    """Seed of one trial, 31 bits. The topology is not in it: the same users draw the same walk on two topologies, which
    cuts the variance of their difference (common random numbers)."""
    return seed_of(f"{seed}/{users}/{rep}")


def seed_of(name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"ntier/{name}".encode()).digest()[:4], "big") >> 1


def block_order(n: int, mask: int) -> list[int]:
    """0..n-1 in bit-reversed order, scrambled by `mask`: any first part of it covers the whole range evenly."""
    if n == 0:
        return []
    bits = max(1, (n - 1).bit_length())
    reversed_ = (int(f"{i:0{bits}b}"[::-1], 2) ^ (mask % (1 << bits)) for i in range(1 << bits))
    return [i for i in reversed_ if i < n]


def order(spec: Spec, loads: tuple[int, ...] | None = None) -> list[Trial]:
    """Trials in complete blocks: repetition 1 of every load, then repetition 2. Inside a block the loads come in an
    order that halves the gaps (lowest, middle, quarters...), so an early stop leaves a coarse sweep instead of half of
    one, and the load does not rise steadily with time (an effect of the order can be seen). The seed scrambles every
    block but the first. A load that is measured from above as well has its two trials one behind the other, and which
    of them is the first one alternates from load to load and from block to block. `loads`: other loads than the
    request's."""
    trials, points = [], spec.points if loads is None else loads
    for rep in range(1, spec.reps + 1):
        mask = 0 if rep == 1 else random.Random(f"{spec.seed}/{rep}").getrandbits(16)  # noqa: S311 (an order, not a secret)
        for i in block_order(len(points), mask):
            trials += in_turn(spec, trial(spec, points[i], rep), first=(i + rep) % 2 == 1)
    return trials


def in_turn(spec: Spec, usual: Trial, *, first: bool) -> list[Trial]:
    """A trial, and the one at its load that comes from above if there is one. Both have the same walks. `first`: the
    usual one comes first."""
    if spec.above is None or usual.users >= spec.above:
        return [usual]
    pair = [usual, replace(usual, above=spec.above)]
    return pair if first else pair[::-1]


def warm_rounds(spec: Spec) -> tuple[int, int]:
    """Rounds of a warm-up, least and most."""
    return next(rounds for run_s, rounds in WARM_ROUNDS.items() if spec.phases.run_s >= run_s)


def warm_up_s(spec: Spec, rounds: float | None = None) -> float:
    """Expected wall time of a warm-up, s; of so many `rounds`, or as many as are usual: the fewest where no JVM has to
    compile."""
    round_s, (least, most) = spec.system.definition.warm_up_s, warm_rounds(spec)
    usual = USUAL_ROUNDS[most] if spec.jvm_tiers else least
    return (rounds or usual) * (round_s + WARM_START_S) if round_s else 0.0


def is_bare(spec: Spec, *, up: bool) -> bool:
    """Whether all must be installed on the nodes first: nothing has set up machines of their own. `up`: they are nodes
    already."""
    from ntier_harness.targets import kind

    return spec.system.definition.deploys and kind(spec.target).own_machines and not up


def deploy_s(spec: Spec, *, up: bool = False) -> float:
    """Expected wall time until the system serves, s."""
    return INSTALL_S if is_bare(spec, up=up) else UP_S + DEPLOY_S


def from_nothing_s(spec: Spec, *, up: bool = False) -> float:
    """Expected wall time until the first trial, of nodes that are not yet deployed, s."""
    return deploy_s(spec, up=up) + warm_up_s(spec)


def trial_duration_s(spec: Spec) -> float:
    """Expected wall time of a trial that is followed by another one, s."""
    overhead_s = OVERHEAD_S + OVERHEAD_NODE_S * (spec.topology.node_count + spec.clients)
    return spec.phases.total_s + overhead_s + (JUDGE_S if spec.search == "capacity" else 0.0)


def ends_early(spec: Spec, *, measured: bool = False) -> bool:
    """Whether less time may be enough: a search ends when it knows enough, and work when it is done, whose time is
    not known before some was `measured`."""
    return spec.search == "capacity" or (spec.system.definition.load.model is LoadModel.WORK and not measured)


def sweep_duration_s(spec: Spec, trials_left: int, *, deployed: bool, up: bool = False) -> float:
    """Expected wall time, s, without retries and long warm-ups. `up`: the nodes are."""
    start = 0.0 if deployed or not trials_left else from_nothing_s(spec, up=up)
    return start + trials_left * trial_duration_s(spec) + REPORT_S


def within(spec: Spec, text: str | None, reps: int | None = None) -> Spec:
    """The search that ends in so many minutes (as typed; None: no limit), from nodes that are not yet deployed: as many
    trials as fit, with more loads rather than more repetitions. Installing bare machines comes on top: whether they
    are is another at the next call of the same command, which must be the same search. `reps`: asked for. Raises
    RequestError."""
    if not text:
        return spec
    minutes, by_minutes = number("minutes", text, MINUTES), reps is None
    if spec.search != "capacity":
        raise RequestError("minutes: only a search uses them; give them with --search capacity")
    trials = int((60 * minutes - from_nothing_s(spec, up=True) - REPORT_S) // trial_duration_s(spec))
    pairs = [(n, r) for r in ([reps] if reps else range(1, 100)) for n in range(SEARCH_LEAST, SEARCH_MOST + 1)]
    fitting = [(n, r) for n, r in pairs if n * r <= trials]
    if not fitting:
        least = math.ceil(sweep_duration_s(spec, SEARCH_LEAST * (reps or 1), deployed=False, up=True) / 60)
        times = f", {reps} times each," if reps and reps > 1 else ""
        raise RequestError(
            f"minutes: {minutes:g} are too few: {SEARCH_LEAST} loads{times} take about {least}; shorter --phases take "
            "less"
        )
    loads, reps = max(fitting, key=lambda pair: (pair[0] * pair[1], pair[0]))
    return replace(spec, asked_loads=loads, reps=reps, reps_by_minutes=by_minutes)


def disk_bytes(spec: Spec, trials: list[Trial]) -> int:
    """Expected size of these raw trials, bytes."""
    return sum(trial_bytes(spec, max(t.users, t.above or 0)) for t in trials)


def trial_bytes(spec: Spec, users: int) -> int:
    """Expected size of a raw trial, bytes: an upper bound, since response time is taken as zero."""
    nodes = spec.topology.node_count + spec.clients + 1  # the host
    interactions = spec.real_users(users) / spec.mix.think_time_s * spec.phases.total_s
    return round(TRIAL_BYTES + nodes * spec.phases.total_s * NODE_BYTES_PER_S + interactions * INTERACTION_BYTES)
