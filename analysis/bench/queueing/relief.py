"""What limits a case, by counterfactual relief alone: long runs at the sweep's highest load, as it is and with more
capacity of a part. What was built in is not asked.

A relief is 1.5 times the servers' capacity at unchanged length of a service (parts.py): what it gains was waiting.

* `none`: relief of everything gains less than 5 %.
* Each part whose relief alone gains 5 % limits: one is `single`, several are `alternating` (each limits a part of the
  time). If none does, but all together do, the smallest set found by leaving out is `simultaneous`.
* If what limits has no collector: `hidden`.
* `unknown`: what was measured does not tell, since another system gives the same data. What limits is a CPU without
  samples; or the loads are so near each other that growth would be lost in the noise of counts, nothing that is
  measured limits, and the answer takes so long that it could be waiting as well as service; or a disk that serves
  several at a time reads full, its queue is not sampled, and what limits is that disk or something without a
  collector.
* A node of a group limits if leaving it out of the group's relief costs half of an equal share of the gain or more."""

from __future__ import annotations

from dataclasses import dataclass, field

from queueing.cases import Case
from queueing.model import Key, System

FACTOR = 1.5
GAIN = 0.05
UNSURE = (0.03, 0.08)
"""A gain in here that decides makes a case borderline. The runs share their random numbers, so that a gain's error is
about a point."""
NODE_PART, UNSURE_NODE = 0.5, (0.3, 0.7)
"""What a node's relief must add, in equal shares of its group's gain, and what of it is borderline."""
RAMP_S, LONG_S = 30.0, 200.0
ERRORS = 2.0
"""Standard errors (95 %) by which two counts must differ to tell growth."""
READS_FULL = 3.0
"""Mean number in service from which on a disk that serves many reads 95 %: it is empty for exp(-3) of the time."""
SUSPECT_BUSY, SUSPECT_WAITING = 0.25, 0.02
"""Parts in use for less (share of capacity), with fewer waiting (share of the users), are relieved together; one by one
only if that gains anything."""


@dataclass
class Label:
    """`claims`: measured key -> nodes (numbers) that limit; `unseen`: keys without a collector that do; `actual`: class
    if everything were known; `gains` by what was relieved; `why` it is borderline (empty: it is not)."""

    truth: str
    actual: str
    claims: dict[Key, tuple[int, ...]]
    unseen: list[Key]
    gains: dict[str, float]
    base_x: float
    base_r: float
    why: list[str] = field(default_factory=list)


class _Bench:
    """Gains of reliefs of one case, each simulated once."""

    def __init__(self, case: Case, long_s: float) -> None:
        self.case, self.users, self.long_s = case, case.levels[-1], long_s
        self.keys = set(case.system.keys())
        self.base = self._run(case.system)
        self.gains: dict[str, float] = {}
        self.unsure: list[str] = []

    def _run(self, system: System):
        return self.case.run(system, self.users, RAMP_S, self.long_s, self.case.seed)

    def gain(self, name: str, keys: set[Key], but: tuple[Key, int] | None = None) -> float:
        if name not in self.gains:
            relieved = self.case.system.relieved(keys, FACTOR, but)
            self.gains[name] = self._run(relieved).throughput / self.base.throughput - 1 if keys else 0.0
        return self.gains[name]

    def decides(self, name: str, value: float) -> bool:
        """Whether a gain counts; notes those that are near the limit."""
        if UNSURE[0] <= value <= UNSURE[1]:
            self.unsure.append(f"{name} {value:+.3f}")
        return value >= GAIN


def text(key: Key) -> str:
    return f"{key[0]} {key[1]}"


def label(case: Case, long_s: float = LONG_S) -> Label:
    """Class, parts and nodes that limit, by runs of this length."""
    bench = _Bench(case, long_s)
    if not bench.decides("all", bench.gain("all", bench.keys)):
        return _named(case, bench, set(), "none")
    suspects = _suspects(bench)
    alone = {k for k in suspects if bench.decides(text(k), bench.gain(text(k), {k}))}
    limits = alone or _smallest(bench, suspects)
    others = bench.gain("others", bench.keys - limits)
    if bench.decides("others", others):
        bench.unsure.append(f"others gain {others:+.3f} too")
    if len(alone) > 1 and bench.gain("claimed", limits) < max(bench.gains[text(k)] for k in alone) + GAIN:
        bench.unsure.append("both together gain little more than one")
    kind = "simultaneous" if not alone and len(limits) > 1 else ("single" if len(limits) == 1 else "alternating")
    return _named(case, bench, limits, kind)


def _suspects(bench: _Bench) -> list[Key]:
    busy: dict[Key, float] = {}
    for part, b in zip(bench.case.system.parts, bench.base.busy, strict=True):
        waits = part.kind != "station"
        enough = b >= SUSPECT_WAITING * bench.users if waits else b >= SUSPECT_BUSY
        busy[part.key] = max(busy.get(part.key, 0.0), (1.0 if waits else b) * (enough or part.resource == "stop"))
    suspects = [k for k in busy if busy[k] > 0]
    rest = bench.keys - set(suspects)
    if rest and bench.gain("rest", rest) >= UNSURE[0]:
        suspects += sorted(rest)
        busy |= dict.fromkeys(rest, 0.1)
    return sorted(suspects, key=lambda k: busy[k])


def _smallest(bench: _Bench, suspects: list[Key]) -> set[Key]:
    """The suspects without those (least used first) whose relief adds less than half of what counts."""
    pair = set(suspects[-2:])
    kept, least = set(suspects), bench.gain("all", bench.keys)
    if bench.gain("claimed", pair) >= max(GAIN, least - GAIN / 2):
        bench.decides("claimed", bench.gain("claimed", pair))
        return pair  # neither does it alone
    for key in suspects:
        if len(kept) == 1:
            break
        left = bench.gain("without " + ", ".join(text(k) for k in sorted(set(suspects) - kept | {key})), kept - {key})
        if left >= max(GAIN, least - GAIN / 2):
            kept.remove(key)
            least = left
    bench.decides("claimed", bench.gain("claimed", kept))
    return kept


def _nodes(case: Case, bench: _Bench, key: Key, limits: set[Key]) -> tuple[int, ...]:
    n = case.system.nodes[key[0]]
    if n == 1:
        return (0,)
    full = bench.gain("claimed", limits)
    loss = [full - bench.gain(f"claimed but {text(key)} {i}", limits, (key, i)) for i in range(n)]
    part = [x * n / full if full > 0 else 0.0 for x in loss]
    bench.unsure += [f"node {i} of {text(key)}" for i in range(n) if UNSURE_NODE[0] <= part[i] <= UNSURE_NODE[1]]
    kept = tuple(i for i in range(n) if part[i] >= NODE_PART)
    if not kept:
        bench.unsure.append(f"no node of {text(key)} counts alone")
    return kept or tuple(range(n))


def tells_growth(users: list[int], completed: float) -> bool:
    """Whether throughput that grows with the users would differ between lowest and highest load by more than the noise
    of the counts; `completed`: interactions at the highest load."""
    return completed * (1 - users[0] / users[-1]) >= ERRORS * (2 * completed) ** 0.5


def _wide_disks(case: Case, bench: _Bench) -> set[Key]:
    """Disks that serve several at a time and read full, of which nobody sampled the queue."""
    if case.view.queues:
        return set()
    parts = zip(case.system.parts, bench.base.busy, strict=True)
    return {
        p.key for p, b in parts if p.resource == "disk" and p.measured and p.servers > 1 and p.servers * b >= READS_FULL
    }


def _named(case: Case, bench: _Bench, limits: set[Key], kind: str) -> Label:
    unmeasured = {p.key for p in case.system.parts if not p.measured}
    unseen = sorted(limits & unmeasured)
    blind = {case.built.blind} if case.built.blind else set()
    seen = limits - unmeasured - blind
    claims = {k: _nodes(case, bench, k, limits) for k in sorted(seen)}
    actual = "hidden" if unseen else kind
    truth = actual
    think, response = case.system.think.mean_s, bench.base.response_s
    untold = case.model == "closed" and not tells_growth(case.users, bench.base.throughput * case.run_s)
    alike = untold and actual in ("none", "hidden") and not seen and response >= GAIN * think
    wide = _wide_disks(case, bench)
    if alike or limits & blind or limits & wide or (wide and actual == "hidden"):
        truth, claims = "unknown", {}
    if seen and unseen:
        bench.unsure.append("something measured and something that is not limit")
    why = bench.unsure
    expected = case.built.kind
    if truth != expected or (expected != "unknown" and limits != set(case.built.keys)):
        why = [*why, f"built in: {expected} {', '.join(text(k) for k in sorted(case.built.keys))}"]
    if truth == "hidden":
        claims = {}
    return Label(truth, actual, claims, unseen, bench.gains, bench.base.throughput, response, why)
