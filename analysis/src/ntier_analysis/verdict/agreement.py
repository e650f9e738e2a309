"""The common verdict of the trials of a plateau, and the moves of the bottleneck from load to load."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np

from ntier_analysis.statistics.share import pooled, wilson
from ntier_analysis.verdict.data import SweepVerdict, TrialData
from ntier_analysis.verdict.load import Bottleneck, Load, Verdict
from ntier_analysis.verdict.saturation import Group
from ntier_analysis.wording import counted

MOST, Z_95 = 0.5, 1.96
"""If some trials dissent, the lower end of the 95 % interval of the share that agrees must be above a half: 7 of 8,
9 of 11."""


def combine(result: SweepVerdict, verdicts: list[Verdict], settled: list[Verdict] | None = None) -> None:
    """What the plateau's trials say (which resources limit; of two or more, the most frequent kind); `unknown` where
    some say something else, unless so many agree that this is no chance. Bottlenecks with their mean saturation.
    `settled`: given if the answers do not account for the users. Then one of two may be full for a while only, unless
    one of these loads, whose answers do, says the same."""
    # Of loads beyond the knee, one at which throughput still grows says nothing against those at which it does not.
    verdicts = [v for v in verdicts if v.verdict != "none"] or verdicts
    verdicts, joined = _with_turns(_with_hidden(verdicts))
    voted = Counter((v.verdict, _named(v)) for v in verdicts)
    # One that tells nothing says nothing against those that do, if these are half of all. One whose users something
    # unmeasured held up tells that what others name is not all that does.
    said = [v for v in verdicts if v.verdict != "unknown" or v.held_up]
    (name, keys), count = Counter((v.verdict, _named(v)) for v in said or verdicts).most_common(1)[0]
    dissent = count < len(said) and wilson(count / len(said), len(said), Z_95)[0] <= MOST
    # Two that limit need more than one of several loads; the second one may lie below the plateau. A resource that
    # another load sees take turns, perhaps, needs more than one, too.
    same = sum((v.verdict, _named(v)) == (name, keys) for load, v in result.trials if load.valid) + bool(joined)
    lonely = len(said) == 1 < len(verdicts) and same < 2 and (name == "multi" or _may_take_turns(keys, verdicts))
    if name == "unknown" or dissent or lonely or 2 * len(said) < len(verdicts):
        result.evidence.append(_disagreement(voted, verdicts))
        return
    if len(said) == 1 and same < 2 and (turns := _turns_elsewhere(keys, result)):
        result.evidence.append(turns)
        return
    if name == "multi" and settled is not None and (name, keys) not in [(v.verdict, _named(v)) for v in settled]:
        result.evidence.append(
            f"{' and '.join(' '.join(k) for k in keys)} are full, but the answers do not account for the users "
            "(N/(Z+R)): requests pile up, and it is not known which of them limits in the long run; run longer"
        )
        return
    agree = [v for v in verdicts if (v.verdict, _named(v)) == (name, keys)]
    result.evidence.append(_agreement(name, count, verdicts) + joined)
    result.verdict, result.kind = name, Counter(v.kind for v in agree).most_common(1)[0][0]
    result.bottlenecks = sorted((_pooled(key, agree) for key in keys), key=lambda b: -b.saturation)
    for b in result.bottlenecks:
        item = f" {b.item}" if b.resource == "thread" else ""
        result.evidence.append(
            f"{b.tier} {b.resource}{item} ({', '.join(b.nodes)}): saturated in {100 * b.saturation:.0f} % of the run, "
            f"95 % interval {100 * b.low:.0f} to {100 * b.high:.0f} %"
        )


def _with_hidden(verdicts: list[Verdict]) -> list[Verdict]:
    """Where a load shows that something hidden limits, one whose users something unmeasured held up says the same."""
    if all(v.verdict != "hidden" for v in verdicts):
        return verdicts
    return [replace(v, verdict="hidden", held_up=False) if v.held_up else v for v in verdicts]


def _with_turns(verdicts: list[Verdict]) -> tuple[list[Verdict], str]:
    """Where a load shows two that take turns, one that saw the same pair, and is only not sure that more of each would
    bring enough, says nothing else. Also how many these are, in words."""
    shown = {_named(v) for v in verdicts if v.kind == "alternating"}
    joined = [
        replace(v, verdict="multi", kind="alternating", bottlenecks=v.perhaps)
        if tuple(sorted((b.tier, b.resource) for b in v.perhaps)) in shown
        else v
        for v in verdicts
    ]
    unsure = sum(a is not b for a, b in zip(verdicts, joined, strict=True))
    text = f" ({unsure} of them saw the turns, and would not be sure alone)" if unsure else ""
    return joined, text


def _may_take_turns(keys: tuple[tuple[str, str], ...], verdicts: list[Verdict]) -> bool:
    """Whether a load could not tell if what is named limits alone, or takes turns with another."""
    return any(set(keys) < {(b.tier, b.resource) for b in v.perhaps} for v in verdicts)


def _turns_elsewhere(keys: tuple[Group, ...], result: SweepVerdict) -> str:
    """What speaks against the only load that names a resource alone: another one, be it a low one that stands still at
    times, saw that take turns with a second. '' if none did."""
    for load, v in result.trials:
        if load.valid and v.kind == "alternating" and set(keys) < set(_named(v)):
            names = " and ".join(" ".join(key) for key in _named(v))
            return (
                f"only one load beyond the knee names {' and '.join(' '.join(key) for key in keys)} alone, and at "
                f"{load.named} {names} take turns: turns that are longer than a run show as one of them"
            )
    return ""


def stops_elsewhere(result: SweepVerdict) -> None:
    """Of a sweep whose loads beyond the knee name no limit: a tier that stands still does so at any load, and is seen
    to at some only (short runs, few users). Where two loads show it, it limits; where one does, it is not known."""
    seen = sorted({load.level for load, v in result.trials if load.valid and v.verdict == "hidden" and v.stopped})
    if result.verdict != "none" or not seen:
        return
    result.verdict = "hidden" if len(seen) > 1 else "unknown"
    result.evidence.append(
        f"at {counted(len(seen), 'other load')} a tier stood still, which no load relieves: that the highest loads do "
        "not show it says little"
    )


def _times_named(verdicts: list[Verdict]) -> Counter[Group]:
    return Counter(key for v in verdicts for key in _named(v))


def _mostly_named(verdicts: list[Verdict]) -> tuple[tuple[Group, ...], list[Verdict]]:
    """The (tier, resource) pairs that more than half of the trials name, and the trials that name any of them."""
    keys = tuple(sorted(key for key, n in _times_named(verdicts).items() if 2 * n > len(verdicts)))
    return keys, [v for v in verdicts if set(keys) & set(_named(v))]


def _agreement(name: str, count: int, verdicts: list[Verdict]) -> str:
    text = f"{count} of {counted(len(verdicts), 'trial')} beyond the knee {'agrees' if count == 1 else 'agree'}: {name}"
    often = ", ".join(f"{' '.join(key)} in {n}" for key, n in _times_named(verdicts).most_common())
    return f"{text} (they name {often})" if count < len(verdicts) and often else text


def _disagreement(voted: Counter, verdicts: list[Verdict]) -> str:
    seen = "; ".join(
        f"{n} x {name} {' and '.join(' '.join(k) for k in keys)}" for (name, keys), n in voted.most_common()
    )
    silent = sum(v.verdict == "unknown" for v in verdicts)
    if silent == len(verdicts):
        return f"no trial beyond the knee names a bottleneck ({len(verdicts)} x unknown)"
    how = "mostly name no bottleneck" if 2 * silent > len(verdicts) else "disagree"
    text = f"the trials beyond the knee {how}: {seen}"
    times, (keys, _) = _times_named(verdicts), _mostly_named(verdicts)
    most = " and ".join(f"{' '.join(k)} ({times[k]} of {len(verdicts)})" for k in keys)
    return f"{text}; most name {most}" if keys else text


def _named(verdict: Verdict) -> tuple[Group, ...]:
    return tuple(sorted((b.tier, b.resource) for b in verdict.bottlenecks))


def _pooled(key: Group, verdicts: list[Verdict]) -> Bottleneck:
    found = [b for v in verdicts for b in v.bottlenecks if (b.tier, b.resource) == key]
    mean, low, high = pooled(*np.array([(b.saturation, b.low, b.high) for b in found]).T)
    times = Counter(n for b in found for n in b.nodes)
    named = tuple(sorted(n for n in times if 2 * times[n] >= len(found))) or tuple(sorted(times))
    item = Counter(b.item for b in found).most_common(1)[0][0]
    return Bottleneck(*key, named, mean, low, high, item)


def migrations(limited: list[tuple[TrialData, Verdict]]) -> list[dict]:
    """Moves of the bottleneck from one load to the next, in order of users: what limits at one load is named no longer
    at the next, where something else is, and its saturation has fallen by more than both intervals."""
    loads = [list(some) for _, some in itertools.groupby(limited, key=lambda found: found[0].load.level)]
    named = [(some, _leaders([v for _, v in some])) for some in loads]
    found = []
    for (a, before), (b, after) in itertools.pairwise([(some, names) for some, names in named if names]):
        if not set(before) & set(after) and _fell(before[0], a, b) and _fell(after[0], b, a):
            found.append(
                _loads(a[0][0].load, b[0][0].load)
                | {
                    "from": dict(zip(("tier", "resource"), before[0], strict=True)),
                    "to": dict(zip(("tier", "resource"), after[0], strict=True)),
                }
            )
    return found


def _loads(a: Load, b: Load) -> dict[str, float]:
    """Of a move, by users; by the factor's value too, where that is another variable."""
    users = {"from_users": a.users, "to_users": b.users}
    return users if a.by_users else users | {"from_value": a.level, "to_value": b.level}


def _leaders(verdicts: list[Verdict]) -> list[Group]:
    """What most trials of a load name, in order of saturation."""
    keys, agree = _mostly_named(verdicts)
    return sorted(keys, key=lambda key: -_pooled(key, agree).saturation)


def _fell(key: Group, high: list[tuple[TrialData, Verdict]], low: list[tuple[TrialData, Verdict]]) -> bool:
    """Whether a resource is saturated less at the second load than at the first, by more than the intervals."""
    return _ends(key, low)[1] < _ends(key, high)[0]


def _ends(key: Group, trials: list[tuple[TrialData, Verdict]]) -> tuple[float, float]:
    """Ends of the interval of the saturation of the most saturated node, over the repetitions of a load and what they
    differ by; (0, 1) if it was not measured."""
    tops = []
    for t, _ in trials:
        some = [s.share for s in t.saturations if s.group == key and s.share.n]
        if some:
            tops.append(max(some, key=lambda share: share.value))
    if not tops:
        return 0.0, 1.0
    return pooled(*np.array([(share.value, share.low, share.high) for share in tops]).T)[1:]
