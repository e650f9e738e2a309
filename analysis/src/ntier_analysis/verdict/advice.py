"""What to measure next, so that the verdict becomes surer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.setting import by_make
from ntier_analysis.verdict.causes import FEW, FULL, RECORD, SOFT
from ntier_analysis.verdict.context import NO_ROOM_PCT, Context
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.disks import LOW_ENOUGH, NEARLY, Room
from ntier_analysis.verdict.doubts import REPEATED, SHOWS
from ntier_analysis.verdict.load import COUNTS, Bottleneck, Load, depth, is_server
from ntier_analysis.verdict.lowest import unproved
from ntier_analysis.verdict.outside import UNLISTED, outside_full
from ntier_analysis.verdict.plateau import BELOW, FAR
from ntier_analysis.verdict.saturation import Saturation
from ntier_analysis.verdict.trial import COARSE_S, FINER, MAYBE_FULL, may_limit, unmeasured
from ntier_analysis.wording import counted, node_of, resource

MOST = 3
"""Sentences at most: the first are the most telling."""
WASTED = 0.1
"""Share of invalid trials from which on the measuring itself comes first."""
HOST_FULL = "host_saturated"
"""Reason of a trial that was refused since the machine beneath the nodes was full: the same again would be, too."""
NAMED = 6
"""Trials that a sentence names; the report lists all."""
REPEAT = "repeat the loads beyond the knee"
LOW = 0.4
"""Knees of a load at which few wait: it completes 0.4 of what the plateau does, and LOW_ENOUGH of that tells."""
TEN_TIMES = "sample the CPUs ten times a second: turns shorter than a second do not show"


@dataclass(frozen=True)
class Add:
    """Asks for a load of so many users; `who` they are, and `why`."""

    users: int
    who: str
    why: str

    def __str__(self) -> str:
        return f"add a load of {counted(self.users, self.who.removesuffix('s'))}: {self.why}"


Texts = list[str | Add]


def advice(
    result: SweepVerdict, valid: list[TrialData], members: list[TrialData], context: Context, low_loads: int
) -> list[str]:
    """`members`: the trials beyond the knee; `context`: what the loads tell of each other; `low_loads`: so many loads
    below the knee bracket it."""
    invalid = [load for load, _ in result.trials if not load.valid]
    if not valid:
        again = ["repeat the sweep: no trial is valid; the reasons are listed"]
        return again if not any(map(host_full, invalid)) else _again(invalid)[:MOST]
    # nothing limits as far as loads are valid, and higher ones were asked for
    free = all(v.verdict == "none" for load, v in result.trials if load.valid)
    unseen = result.verdict == "unknown" and bool(invalid) and free
    wasted = len(invalid) > WASTED * len(valid) or unseen
    first = _again(invalid) if wasted else []
    by_verdict = {"unknown": _unknown, "hidden": _hidden, "none": _none}
    special = [] if unseen else by_verdict.get(result.verdict, _named)(result, valid, members, context)
    refused = [_round(load.users) for load in invalid if load.by_users] if wasted else []
    special = [text for text in special if not (isinstance(text, Add) and text.users in refused)]
    asked = [*refused, *(text.users for text in special if isinstance(text, Add))]
    repeated = any(str(text).startswith(REPEAT) for text in special)
    unbounded = [] if repeated else _unbounded(result, members)
    return [str(text) for text in (*first, *special, *_loads(result, valid, asked, low_loads), *unbounded)][:MOST]


def _again(invalid: list[Load]) -> list[str]:
    """What to do about trials that were refused."""
    full, others = ([t for t in invalid if host_full(t) == so] for so in (True, False))
    texts = [f"repeat {_names(others)}: invalid"] if others else []
    if full:
        texts.append(
            "let nothing else run on the machine beneath the nodes, or take a larger one, or a smaller scale for the "
            f"whole sweep: it was full at {_names(full)}"
        )
    return texts


def host_full(load: Load) -> bool:
    """Whether the machine beneath the nodes was full in this trial, which was refused for it."""
    return HOST_FULL in load.invalid_reasons.split(", ")


def _names(some: list[Load]) -> str:
    more = len(some) - NAMED
    names = ", ".join(t.trial for t in some[:NAMED])
    return f"{names} and {counted(more, 'other trial')}" if more > 0 else names


def _unknown(result: SweepVerdict, valid: list[TrialData], members: list[TrialData], context: Context) -> Texts:
    some, imported = members or valid, valid[0].imported
    texts: Texts = [*_outside(some, context), *_higher(result, members)]
    if any(UNLISTED in v.evidence for _, v in result.trials):
        texts.append("say which servers the system has: its tiers, and a topology that counts their nodes (1/2/1)")
    missing = sorted({n for t in some for n in unmeasured([s for s in t.saturations if is_server(s.tier)], t.nodes)})
    if missing:
        texts.append(f"measure the CPU of {', '.join(missing)}")
    texts += _room_of_disks(result, some, valid, context)
    texts += _always_full(some, context)
    lower = any(isinstance(text, Add) and text.users < valid[0].load.users for text in texts)
    if len({t.load.level for t in valid}) < 2 and not lower:
        texts.append(_another_load(valid[0].load))
    reasons, coarse = _reasons(result, some), _coarse(some)
    if any(text.endswith(RECORD) for text in reasons):
        texts.append(f"{RECORD}: they show whether users wait while throughput is high")
    few = any(FEW in text for text in reasons)
    if coarse and (few or any(text.endswith(FINER) for text in reasons)):
        texts.append(TEN_TIMES)
    if np.mean([t.load.unmet for t in some]) >= COUNTS:
        texts.append(f"{_longer(imported)}: in so short a run requests only pile up")
    elif few:
        texts.append(f"{_longer(imported)}: of so few samples, turns may be chance")
    texts = texts or _full_pools(result, some, valid, context)
    named = {(b.tier, b.resource) for _, v in result.trials for b in v.bottlenecks}
    if not texts and len(named) > 1:
        # longer first: where two take turns, each of several short runs may show another one
        texts.append(f"{_longer(imported)}, or repeat them{by_make('REPS=3', imported)}: they disagree")
    texts = texts or _two_full(some)
    if not texts and all(t.load.spans is None for t in some):
        texts.append(f"{RECORD}: they show when users wait and what limits then")
    if not texts and coarse:
        texts.append(TEN_TIMES)
    texts = texts or _much_used(some, reasons, valid, context)
    if not texts:  # all was measured, and leaves a disk in doubt: repetitions would, too
        tiers = dict.fromkeys(s.tier for t in some for s in t.saturations if _doubtful(s, context.disks))
        texts += [_with_more(tier, "disk", "", valid) for tier in tiers]
    return [*_stood_once(result), *_stopped(result, some), *(texts or [_repeat(imported)])]


def _much_used(some: list[TrialData], reasons: list[str], valid: list[TrialData], context: Context) -> list[str]:
    """CPUs that are not full, and used so much that they may limit however long they are measured: more of them tells.
    The deepest first."""
    tiers = {
        s.tier
        for t in some
        for s in t.saturations
        if may_limit(s, context.used_pct.get(s.key, 0.0), t.load) and _doubted(s, reasons)
    }
    return [_with_more(tier, "cpu", "", valid) for tier in sorted(tiers, key=lambda t: -depth(t, some[0].order))]


def _doubted(s: Saturation, reasons: list[str]) -> bool:
    """Whether nothing is called hidden since this may be full."""
    return any(text.startswith(f"{s.name} {MAYBE_FULL}") for text in reasons)


def _reasons(result: SweepVerdict, some: list[TrialData]) -> list[str]:
    """Why these trials name nothing."""
    names = {t.load.trial for t in some}
    return [text for load, v in result.trials if load.trial in names and v.verdict == "unknown" for text in v.evidence]


def _coarse(some: list[TrialData]) -> bool:
    return any(s.interval_s > COARSE_S for t in some for s in t.saturations if s.resource == "cpu")


def _longer(imported: bool) -> str:
    return f"run the loads beyond the knee longer{by_make('PHASES=standard', imported)}"


def _stood_once(result: SweepVerdict) -> list[str]:
    """A system that stood still once or twice, at one load only, may never do so again (doubts.py)."""
    valid = [(load, v) for load, v in result.trials if load.valid]
    stops = [load for load, v in valid if v.stopped]
    if len({load.level for load in stops}) != 1 or len({load.level for load, _ in valid}) == 1:
        return []
    often = max(len(load.pauses) for load in stops) >= REPEATED
    return [] if often else [f"repeat the load of {stops[0].named}: whether it stands still again is not known"]


def _few_wait(result: SweepVerdict, valid: list[TrialData], context: Context, share: float, why: str) -> Texts:
    """Asks for a load at which few wait, if none completes at most this share of what the plateau does."""
    load = valid[0].load
    alone = load.model is LoadModel.CLOSED and (load.users < 2 or not load.by_users)
    if alone or any(t.load.throughput_per_s <= share * context.level for t in valid):
        return []
    users = LOW * result.knee_users
    return [_fewer(users if users < load.users else load.users / 2, load, why)]


def _outside(some: list[TrialData], context: Context) -> list[str]:
    """What is not the system's own and has no room."""
    found = {s.name for t in some for s in outside_full(t.saturations, context)}
    return [f"give {' and '.join(sorted(found))} more room: what the system can do does not show"] if found else []


def _higher(result: SweepVerdict, members: list[TrialData]) -> list[Add]:
    """Where the loads beyond the knee name a limit, but are too near the knee for it to show (doubts.py)."""
    names = {t.load.trial for t in members if t.load.level == members[-1].load.level}
    said = [v for load, v in result.trials if load.trial in names]
    stopped = any(v.stopped for load, v in result.trials if load.valid)
    if stopped or any(v.verdict in ("unknown", "none") or v.lost >= SHOWS for v in said):
        return []
    if not said or not np.isfinite(result.knee_users):
        return []
    factor = FAR if FAR * result.knee_users > max(t.load.users for t in members) else 2.0
    wanted = _round(factor * result.knee_users)
    return [Add(wanted, members[0].load.who, "whether something limits shows there")]


def _stopped(result: SweepVerdict, some: list[TrialData]) -> list[str]:
    """Where to look in a system that stands still at times."""
    names = {t.load.trial for t in some}
    tiers = {tier for load, v in result.trials if load.trial in names for tier in v.stopped}
    if not tiers:
        return []
    order = sorted(tiers, key=lambda tier: -depth(tier, some[0].order))
    return [
        f"find out what {' and '.join(order)} wait{'s' if len(order) == 1 else ''} for when everything stands still "
        "(list the statements and threads that run then): locks of tables or rows, checkpoints, garbage collections"
    ]


def _another_load(load: Load) -> str | Add:
    if load.model is LoadModel.OPEN:
        return "add a lower rate and a higher one: they bracket the capacity"
    if load.model is LoadModel.WORK:
        return f"add {max(2, 2 * load.users)} workers, and fewer: they tell service from waiting"
    if load.users < 2:  # who is alone waits for nobody
        return "add a load of more users: it tells service from waiting"
    return Add(max(1, round(load.users / 3)), "users", "it tells service from waiting")


def _always_full(some: list[TrialData], context: Context) -> list[str]:
    """What reads full at loads that lose nothing, too. A disk for which users wait may be full of their requests alone,
    and still have room: one that serves several at a time reads full long before it is."""
    found = [s for t in some for s in t.saturations if _no_room(s) and _full_of_what(s, context)]
    disks = {s.name for s in found if context.is_waited_for(s)}
    others = {s.name for s in found} - disks
    texts = [f"find out what fills {' and '.join(sorted(others))} at low load, end it, and repeat"] if others else []
    if disks:
        names, they = " and ".join(sorted(disks)), "they limit" if len(disks) > 1 else "it limits"
        texts.append(
            f"find out what fills {names} at low load (pidstat -d): if anything but the requests does, end it, and "
            f"repeat; if not, repeat with a faster disk: throughput grows if {they}"
        )
    return texts


def _full_of_what(s: Saturation, context: Context) -> bool:
    """Whether it is not known if the requests fill it, or something else that does so at low load."""
    return context.is_always_full(s) or (context.is_full_anyway(s) and context.is_waited_for(s))


def _room_of_disks(result: SweepVerdict, some: list[TrialData], valid: list[TrialData], context: Context) -> Texts:
    """What tells whether disks that read full have room: their queue, and a load at which few wait for them."""
    found = [s for t in some for s in t.saturations if _doubtful(s, context.disks)]
    blind = sorted({s.node for s in found if not np.isfinite(s.queue)})
    texts: Texts = []
    if blind:
        texts.append(f"sample queue and waiting time of the disk of {', '.join(blind)} (iostat: aqu-sz, await)")
    if found:
        nodes = ", ".join(sorted({s.node for s in found}))
        why = f"how long a request takes at the disk of {nodes} if few wait"
        texts += _few_wait(result, valid, context, LOW_ENOUGH, why)
    return texts


def _full_pools(result: SweepVerdict, some: list[TrialData], valid: list[TrialData], context: Context) -> Texts:
    """Pools that are full while no hardware is, the deepest first: a step more tells whether they limit, and so does,
    mostly, how long a place is held at low load."""
    found = {s.group: s for t in some for s in t.saturations if is_server(s.tier) and s.share.value >= FULL}
    if any(s.utilization_mean_pct >= NO_ROOM_PCT for s in found.values() if s.resource not in SOFT):
        return []
    pools = sorted((s for s in found.values() if s.resource in SOFT), key=lambda s: -depth(s.tier, some[0].order))
    texts: Texts = []
    if pools:
        texts += _few_wait(result, valid, context, NEARLY, "how long a place in the full pool is held if nothing waits")
    texts += [f"raise the {s.item or s.resource} of {s.tier} by a step: throughput grows if it limits" for s in pools]
    return texts


def _two_full(some: list[TrialData]) -> list[str]:
    """If two resources have no room in any of the trials, a longer run shows whether both limit."""
    full = [{s.group for s in t.saturations if _no_room(s)} for t in some]
    both = sorted(set.intersection(*full))
    if len(both) < 2:
        return []
    names = " and ".join(" ".join(group) for group in both)
    return [f"{_longer(some[0].imported)}: {names} are full, and one may have room"]


def _no_room(s: Saturation) -> bool:
    return is_server(s.tier) and s.resource not in SOFT and s.utilization_mean_pct >= NO_ROOM_PCT


def _doubtful(s, disks: dict) -> bool:
    known = disks.get(s.key)
    return known is not None and known.room in (Room.UNKNOWN, Room.PERHAPS) and s.utilization_mean_pct >= NO_ROOM_PCT


def _hidden(result: SweepVerdict, valid: list[TrialData], members: list[TrialData], context: Context) -> list[str]:
    texts = _stopped(result, members or valid)
    last = members[-1] if members else valid[-1]
    seen: dict[str, set[str]] = {}
    for s in last.saturations:
        seen.setdefault(s.node, set()).add(s.resource)
    servers = [n for n, tier in last.nodes.items() if is_server(tier)]
    for wanted in ("disk", "network"):
        blind = [n for n in servers if wanted not in seen.get(n, set())]
        if blind:
            texts.append(f"sample the {wanted} of {', '.join(blind)}")
    if any(s.interval_s > COARSE_S for s in last.saturations if s.resource == "cpu"):
        texts.append("sample the CPUs ten times a second: turns shorter than a second do not show")
    return texts or [
        "look for something that makes requests wait without using a resource: locks, pools that are not measured"
    ]


def _none(result: SweepVerdict, valid: list[TrialData], members: list[TrialData], context: Context) -> list[str]:
    load = valid[-1].load
    if load.by_users or load.model is LoadModel.OPEN:
        return [f"add loads above {load.named}, until throughput no longer grows"]
    most = max((t.load for t in valid), key=lambda load: load.throughput_per_s)  # a factor may ask for less as it grows
    return [f"add values of {load.factor} that ask for more than {most.named}, until throughput no longer grows"]


def _named(result: SweepVerdict, valid: list[TrialData], members: list[TrialData], context: Context) -> Texts:
    load = valid[0].load
    alone = load.model is LoadModel.CLOSED and load.users < 2  # of whom there is no fewer
    lower = [] if alone else [_lower(b, load) for b in unproved(result, valid)]
    return [*lower[:1], *_more_of(result, valid)]


def _lower(b: Bottleneck, load: Load) -> str | Add:
    """Of what is full at every load."""
    why = f"if the use of {b.tier} {resource(b.resource)} falls with the throughput, requests fill it"
    return _fewer(load.users / 3, load, why)


def _fewer(users: float, load: Load, why: str) -> str | Add:
    """Asks for less than the lowest `load`: so many `users`, where they think."""
    if load.model is LoadModel.CLOSED:
        return Add(_round(users), load.who, why)
    return f"add {'a lower rate' if load.model is LoadModel.OPEN else 'a load of fewer workers'}: {why}"


def _more_of(result: SweepVerdict, valid: list[TrialData]) -> list[str]:
    """What relieves the first that is named."""
    first = result.bottlenecks[0]
    if first.resource in SOFT:
        return [f"raise the {first.item or first.resource} of {first.tier} by a step: throughput grows if it limits"]
    return [_with_more(first.tier, first.resource, first.item, valid)]


def _with_more(tier: str, name: str, item: str, valid: list[TrialData]) -> str:
    """The test of a resource of a tier."""
    larger = tier in valid[0].complete  # the system allows no more of them
    node = f"a larger {node_of(tier)}" if larger else f"one more {node_of(tier)}"
    return f"repeat with {node}: throughput grows if its {resource(name, item)} limits"


def _loads(result: SweepVerdict, valid: list[TrialData], asked: list[int], low_loads: int) -> list[str]:
    """Loads that bracket the knee, but for what is `asked` for already."""
    if (
        not valid[0].load.by_users
        or result.verdict == "none"
        or not np.isfinite(result.knee_users)
        or result.knee_bracketed
    ):
        return []
    knee = result.knee_users
    users = [t.load.users for t in valid]
    wanted = _below(knee, {*users, *asked}, low_loads)
    if result.at_least:
        wanted += [_round(f * knee) for f in (FAR, 1.7, 2.0)]
    more = ", ".join(str(n) for n in dict.fromkeys(wanted) if n not in asked and (n > 1 or n not in users))
    return [f"add loads of {more} {valid[0].load.who}"] if more else []


def _below(knee: float, there: set[int], low_loads: int) -> list[int]:
    """What `there` lacks of so many loads that bracket the knee from below, those first that are farthest from it."""
    low = [n for n in there if n <= BELOW * knee]
    free = [n for n in dict.fromkeys(_round(f * knee) for f in (0.4, 0.6)) if n <= BELOW * knee and n not in low]
    free.sort(key=lambda n: -min((abs(n - other) for other in low), default=0))
    return free[: max(0, low_loads - len(low))]


def _unbounded(result: SweepVerdict, members: list[TrialData]) -> list[str]:
    """A maximum whose trials differ too much for an interval."""
    found = result.max_throughput
    if found is None or np.isfinite(found.low) or len(members) < 2:
        return []
    return [f"{_repeat(members[0].imported)}: {len(members)} trials give the maximum no interval"]


def _repeat(imported: bool) -> str:
    return f"{REPEAT}{by_make('REPS=3', imported)}"


def _round(users: float) -> int:
    """To two digits; one user at least."""
    digits = max(0, int(np.floor(np.log10(max(users, 1)))) - 1)
    return max(1, round(users / 10**digits) * 10**digits)
