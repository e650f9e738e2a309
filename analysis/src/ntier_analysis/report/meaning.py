"""What a verdict means for its reader, in two or three sentences."""

from __future__ import annotations

import pandas as pd

from ntier_analysis.figures.load_axis import in_its_words
from ntier_analysis.report import words
from ntier_analysis.wording import resource

POOLS = ("pool",)
"""Resources that a setting enlarges."""
ALONE = ("thread", "lock")
"""Resources of which a node cannot be given more: a thread uses one core at most, a lock has one holder."""


def meaning(verdict: dict, trials: pd.DataFrame, scale: float) -> list[str]:
    """verdict: one sweep of `ntier-analysis verdict --json`; trials: the store's table, for the response times."""
    kind = verdict["verdict"]
    sentences = {"single": _single, "multi": _multi, "none": _none, "hidden": _hidden, "unknown": _unknown}[kind](
        verdict
    )
    sentences += _waiting(trials)
    if scale != 1.0:
        sentences.append(
            f"The nodes had {scale:g} of their nominal capacity: bottleneck and utilization carry over to full size, "
            "response times below saturation do not."
        )
    return sentences


def _keeps_up(verdict: dict) -> str:
    """Up to where throughput grows with the users, and what happens beyond; nothing where there is no maximum."""
    if verdict["max_throughput_per_s"] is None:
        return ""
    knee, who = verdict.get("knee_users"), words.who(verdict)
    lowest = min((t["users"] for t in verdict.get("trials", []) if t["valid"]), default=0)
    if knee is not None and lowest >= knee:
        beyond = "All loads lie beyond the knee"
        if verdict["max_throughput_at_least"]:
            return f"{beyond}, and are too few to show the maximum, so it is a lower bound."
        return f"{beyond}: with more {who}, all wait longer and no more gets done."
    upto = f"Up to about {words.rounded(knee)} {who} throughput grows with the {who}" if knee is not None else ""
    if verdict["max_throughput_at_least"]:
        bound = "The loads do not reach far enough beyond that to show the maximum, so it is a lower bound."
        return f"{upto}. {bound}" if upto else "The loads do not reach far enough, so the maximum is a lower bound."
    return f"{upto}. With more {who}, all wait longer and no more gets done." if upto else ""


def _single(verdict: dict) -> list[str]:
    (first,) = verdict["bottlenecks"]
    name = f"{first['tier']} {resource(first['resource'], first.get('item', ''))}"
    if first["resource"] in POOLS:
        change = f"To raise the maximum, enlarge the {name} or hold its places for a shorter time."
    elif first["resource"] in ALONE:
        change = f"To raise the maximum, spread the work of the {name} over several, or let it do less."
    else:
        change = f"To raise the maximum, add {name} or let each interaction use less of it."
    change += " As long as it limits, more of anything else does not help."
    return [t for t in (_keeps_up(verdict), change) if t]


def _multi(verdict: dict) -> list[str]:
    how = {"simultaneous": "at the same time", "alternating": "in turns"}.get(verdict.get("kind") or "", "")
    both = f"The resources named are saturated {how}: " if how else "Several resources are saturated: "
    return [t for t in (_keeps_up(verdict), f"{both}relieving one of them alone gains little.") if t]


def _none(verdict: dict) -> list[str]:
    room = "The system had room at every load of this sweep."
    if verdict["max_throughput_per_s"] is None:  # of a factor that is no amount of load
        return [room]
    return [f"{room} Its maximum lies higher; these loads cannot tell where."]


def _hidden(verdict: dict) -> list[str]:
    cause = (
        f"{words.who(verdict).capitalize()} wait, but nothing that was measured is saturated, so the cause was not "
        "measured. It may be a lock, a queue, or a resource without a collector. More hardware may change nothing."
    )
    return [t for t in (_keeps_up(verdict), cause) if t]


def _unknown(verdict: dict) -> list[str]:
    return ["These data neither name a bottleneck nor rule one out. The evidence says what is missing."]


def _waiting(trials: pd.DataFrame) -> list[str]:
    """Mean response time at the lowest and at the highest valid load."""
    known = trials[trials["valid"].astype(bool)].dropna(subset=["response_time_mean_ms"])
    means = known.groupby("users")["response_time_mean_ms"].mean().sort_index()
    if len(means) < 2:
        return []
    first, last = (f"{words.duration(means.iloc[i])} at {words.count(means.index[i])} users" for i in (0, -1))
    return [in_its_words(f"On average an interaction takes {first}, and {last}.")]
