"""What a report says in words: numbers with intervals, the verdict's sentence, warnings."""

from __future__ import annotations

import math

import pandas as pd

from ntier_analysis.contracts.implied import TIERS, USERS
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.prediction.forecast import Forecast, beyond
from ntier_analysis.setting import by_make, is_imported
from ntier_analysis.wording import counted, interval, join, number, resource, share, some_are, why_invalid

EXPLORATORY_S = 180.0
"""Run phases below the `standard` profile's are labelled exploratory."""
NEXT = "What to do next"
"""Over the advice of a verdict."""


def count(value: float | None) -> str:
    """Whole numbers with thousands separators, others as they are; a missing value is a dash."""
    return "–" if value is None or pd.isna(value) else f"{int(value):,}" if value == int(value) else f"{value:g}"


def rounded(users: float) -> str:
    """A load that was estimated: two digits."""
    return f"{float(f'{users:.2g}'):,.0f}"


def duration(ms: float) -> str:
    """`9.65 ms`, `202 ms`, `15.3 s`."""
    return f"{number(ms)} ms" if ms < 1000 else f"{number(ms / 1000)} s"


def nodes(names: list[str]) -> str:
    """`db1 and db3`; three and more that follow each other as `db1 to db9`."""
    runs: list[list[str]] = []
    for name in names:
        if runs and name == _next(runs[-1][-1]):
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else run
    return join(parts)


def _next(name: str) -> str:
    """`db10` after `db9`, `db010` after `db009`; nothing comes after a name without a number."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return f"{stem}{int(digits) + 1:0{len(digits)}d}" if digits else ""


def rate(verdict: dict, scale: float) -> str:
    """Maximum throughput as measured, and nominal beside it if the model is scaled."""
    value, (low, high) = verdict["max_throughput_per_s"], verdict["max_throughput_interval"]
    least = "no less than " if verdict["max_throughput_at_least"] else ""
    measured = f"{least}{interval(value, low, high)} interactions/s"
    if scale == 1.0:
        return measured
    nominal = interval(*(None if v is None else v / scale for v in (value, low, high)))
    return f"{measured} measured (nominal {nominal} at scale {scale:g})"


def verdict_sentence(verdict: dict, scale: float) -> str:
    """The report's first sentence. verdict: one sweep of `ntier-analysis verdict --json`."""
    topology, kind = verdict["topology"], verdict["verdict"]
    if topology.isdecimal():  # of a single tier
        topology = f"topology {topology}"
    knee = verdict.get("knee_users")
    start = "" if knee is None else f" from {rounded(knee)} {who(verdict)}"
    # A factor that is no amount of load has no largest throughput to reach.
    reached = "" if verdict["max_throughput_per_s"] is None else f" at {rate(verdict, scale)}"
    if kind in ("single", "multi"):
        bottlenecks = verdict["bottlenecks"]
        names = join([f"{_limit(b)} on {nodes(b['nodes'])}" for b in bottlenecks])
        shares = join([share(b["saturation"], *b["interval"]) for b in bottlenecks])
        limit = "limits" if len(bottlenecks) == 1 else "limit"
        how = f" ({verdict['kind']})" if kind == "multi" and verdict.get("kind") else ""
        return f"{names} {limit} {topology}{how}{reached}{start}; saturation {shares}."
    users = max((t["users"] for t in verdict["trials"] if t["valid"]), default=0)  # invalid loads show nothing
    if kind == "none" and not _of_users(verdict):
        return f"Nothing limits {topology} at any of its loads."
    if kind == "none":
        law = "N/(Z+R), the users divided by think and response time"
        return f"Nothing limits {topology} up to {users:,} users: throughput follows {law}."
    if kind == "hidden":
        return (
            f"Throughput of {topology} levels off{reached}{start}, although no measured resource saturates: the "
            "bottleneck is hidden."
        )
    return f"The bottleneck of {topology} is unknown: the data do not suffice."


def sentence(line: str) -> str:
    """With a capital letter and a full stop; a line that begins with a name (`db1`, `db cpu`, `sleep_s`) keeps it."""
    first = line.partition(" ")[0]
    named = first in TIERS or any(c.isdigit() or c == "_" for c in first)
    begun = line if named else line[:1].upper() + line[1:]
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


def who(verdict: dict) -> str:
    """Who makes the load: `users` or `workers`."""
    return LoadModel(verdict.get("load_model", LoadModel.CLOSED)).who


def _of_users(verdict: dict) -> bool:
    """Whether the loads are numbers of users who think."""
    closed = verdict.get("load_model", LoadModel.CLOSED) == LoadModel.CLOSED
    return closed and verdict.get("factor", {}).get("name", USERS) == USERS


def named(verdict: dict) -> str:
    """A trial's verdict in few words: `single: db CPU`."""
    names = [_limit(b) for b in verdict["bottlenecks"]]
    return f"{verdict['verdict']}: {join(names)}" if names else verdict["verdict"]


def _limit(bottleneck: dict) -> str:
    return f"{bottleneck['tier']} {resource(bottleneck['resource'], bottleneck.get('item', ''))}"


def migrations(verdict: dict) -> list[str]:
    """One sentence per change of the bottleneck along the loads."""

    def end(step: dict, side: str) -> str:
        at = f"{step[f'{side}_users']:,} {who(verdict)}"
        if f"{side}_value" in step:
            factor = verdict["factor"]
            at = f"{factor['name']} {step[f'{side}_value']:g} {factor['unit']}".rstrip()
        return f"{step[side]['tier']} {resource(step[side]['resource'])} at {at}"

    return [f"the bottleneck migrates from {end(m, 'from')} to {end(m, 'to')}" for m in verdict["migration"]]


def migration_sentence(verdict: dict) -> str:
    """Whether the bottleneck changes over the loads; not known unless two loads or more name one."""
    if verdict["migration"]:
        return sentence("; ".join(migrations(verdict)))
    by_load: dict[float, set[str]] = {}
    for trial in verdict["trials"]:
        if trial["valid"]:
            by_load.setdefault(trial["factor_value"], set()).update(_limit(b) for b in trial["bottlenecks"])
    named = [names for names in by_load.values() if names]
    if len(named) < 2:
        names = "names" if len(named) == 1 else "name"
        return (
            f"Whether the bottleneck changes over the loads is not known: {len(named)} of "
            f"{counted(len(by_load), 'valid load')} {names} one."
        )
    same = sorted(set.intersection(*named))
    if all(names == set(same) for names in named):
        return f"The bottleneck does not change over the {len(named)} loads that name one: {join(same)}."
    return (
        f"No change of the bottleneck is shown, but the {len(named)} loads that name one do not all name the same: "
        f"{join(sorted(set.union(*named)))}."
    )


def scale_sentence(scale: float) -> str:
    """What the scale means for the reader; empty at scale 1."""
    if scale == 1.0:
        return "All figures are as measured; none is nominal (scale 1)."
    return (
        f"Scale model at scale {scale:g}: node capacity and users are multiplied by {scale:g}, think time and demand "
        "per interaction are not. Utilization and bottleneck carry over; nominal throughput is the measured one "
        f"divided by {scale:g}. The knee is rounder and response times below saturation are about "
        f"{1 / scale:.2g} times as long as at scale 1: do not compare them across scales."
    )


def warnings(trials: pd.DataFrame, checks: pd.DataFrame, verdict: dict) -> list[str]:
    """What a reader must know before using a number, most important first."""
    sentences = []
    bad = trials[~trials["valid"].astype(bool)]
    if len(bad):
        named = "; ".join(f"{t.trial} ({why_invalid(t) or 'not collected'})" for t in bad.itertuples())
        sentences.append(f"{some_are(len(bad), len(trials), 'trial')} INVALID and not used in the verdict: {named}.")
    sentences += (told := _not_validated(trials))
    imported = bool(told) or is_imported(trials)
    run_s = (trials["run_end_s"] - trials["run_start_s"]).median()
    if run_s < EXPLORATORY_S:
        how = by_make(f"PHASES=60/{EXPLORATORY_S:.0f}/10", imported)
        sentences.append(
            f"Exploratory: run phases of {run_s:.0f} s. For claims measure {EXPLORATORY_S:.0f} s{how}, or give each "
            "number's interval."
        )
    limited = verdict["verdict"] not in ("none", "unknown") and verdict["max_throughput_per_s"] is not None
    if limited and not verdict["knee_bracketed"]:
        sentences.append(
            "The loads do not enclose the knee: the maximum throughput needs two loads below it and three above."
        )
    if len(checks):
        sentences += _speed(checks[checks["id"] == "H6"], imported)
    open_checks = checks[(checks["outcome"] == "undecidable") & checks["required"]] if len(checks) else checks
    if len(open_checks):
        names = ", ".join(f"{i} ({n})" for i, n in open_checks["id"].value_counts().items())
        sentences.append(f"Required checks that could not be decided (too few samples), by number of trials: {names}.")
    retried = trials[trials["valid"].astype(bool) & (trials["attempts"].fillna(1) > 1)]
    if len(retried):
        sentences.append(
            "Valid only after a retry: " + ", ".join(f"{t.trial} (attempt {t.attempt})" for t in retried.itertuples())
        )
    commits = trials["git_commit"].dropna().unique()
    if len(commits) > 1:
        sentences.append(f"The trials were run by {len(commits)} different commits of the program.")
    return sentences


def _not_validated(trials: pd.DataFrame) -> list[str]:
    """What no check has examined, of imported trials."""
    texts = trials["not_validated"] if "not_validated" in trials else pd.Series(dtype=str)
    counts = texts[texts.notna() & (texts != "")].value_counts(sort=False)
    return [
        f"{some_are(n, len(trials), 'trial')} imported. NOT VALIDATED in them: {text}." for text, n in counts.items()
    ]


def _speed(speed: pd.DataFrame, imported: bool) -> list[str]:
    """Whether the machine itself was faster at some moments than at others, by check H6."""
    uneven = speed[speed["outcome"] == "fail"]
    if 2 * len(uneven) <= len(speed):
        return []
    return [
        f"The machine's own speed varied in {len(uneven)} of {counted(len(speed), 'trial')}: the same work cost up to "
        f"{uneven['value'].max():.0f} % more CPU time in some seconds than in others (check H6). Loads, and sweeps of "
        f"other hours, may differ by that alone: repeat before you compare{by_make('REPS=3', imported)}."
    ]


def prediction(forecast: Forecast | str, scale: float, verdict: dict) -> str:
    """The closed model's prediction for the sweep and its error, or the reason why there is no prediction. verdict: of
    the same sweep, as in `verdict --json`."""
    if isinstance(forecast, str):
        return f"No prediction from the demands: {forecast}."
    best, off = forecast.at_loads.maximum, forecast.errors
    nominal = "" if scale == 1.0 else f" (nominal {interval(*(v / scale for v in (best.value, best.low, best.high)))})"
    because = beyond(verdict)
    loads = counted(forecast.loads["users_real"].nunique(), "load")
    limit = f"limited by the {best.tier} tier" if not because else f"which is an upper bound: {because}"
    text = (
        f"The exact closed model of these demands has its maximum at {interval(best.value, best.low, best.high)} "
        f"interactions/s{nominal}, {limit}. It misses the measured throughput by "
        f"{100 * off.throughput:.1f} % on average over {loads} and the response time by {100 * off.response:.0f} %"
    )
    return text + ("." if math.isnan(off.plateau) else f"; its maximum is {100 * off.plateau:+.1f} % off the plateau.")
