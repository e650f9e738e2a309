"""What single figures need beyond the store's tables: times from the raw logs, windows, densities of any resource."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.described import order_of
from ntier_analysis.errors import DataError
from ntier_analysis.figures import course, densities, tiers
from ntier_analysis.figures.sequence import WINDOW_S, Source
from ntier_analysis.figures.style import tier_order
from ntier_analysis.parsers import trace, weblog
from ntier_analysis.report.data import SweepData
from ntier_analysis.statistics.in_progress import windows
from ntier_analysis.trial import RawTrial

SECOND_S = 1.0
COUNTED = sorted({metric for m in course.MEASURES if m.name in ("running", "executed") for _, metric, _ in m.choices})
"""Metrics of what is running on a node and of what it executes."""
DENSITY_INTERVAL_S = 1.0
"""Densities are drawn from means of one second, the paper's sampling interval: shorter samples of a node with a CPU
quota scatter far beyond 100 %, since the kernel hands the quota out in slices."""


# ---- densities of any resource ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Density:
    """One resource of one node over the users: what `density_map` and `density_surface` draw."""

    node: str
    tier: str
    resource: str
    item: str
    curves: pd.DataFrame
    shares: pd.DataFrame


def resources(data: SweepData) -> pd.DataFrame:
    """What has a utilization: node, tier, resource, item, in the order of a request's way."""
    measured = data.saturation[["node", "tier", "resource", "item"]].drop_duplicates()
    return measured.sort_values(["tier", "node", "resource", "item"], key=_order, ignore_index=True)


def _order(column: pd.Series) -> pd.Series:
    return column.map(tier_order) if column.name == "tier" else column


def density_of(data: SweepData, node: str, resource: str, item: str = "") -> Density | None:
    """None where its run phases hold no sample that can be drawn."""
    key = {"node": node, "resource": resource, "item": item}
    shares = data.saturation[(data.saturation[list(key)] == pd.Series(key)).all(axis=1)]
    if shares.empty:
        return None
    if resource == "cpu":
        samples = data.cpu[(data.cpu["node"] == node) & (data.cpu["item"] == item)]
    else:
        run = data.samples[(data.samples["phase"] == "run") & (data.samples["metric"] == "utilization_pct")]
        samples = run[(run[list(key)] == pd.Series(key)).all(axis=1)]
        # several collectors may measure it; the saturation says which one was trusted
        samples = samples.merge(shares[["trial", "source"]].drop_duplicates(), on=["trial", "source"])
        users = data.trials.set_index("trial")["users"]
        samples = samples.assign(users=samples["trial"].map(users)).sort_values(["trial", "t_s"], ignore_index=True)
    samples = densities.without_invalid(samples, shares)
    curves = densities.node_densities(densities.averaged(samples, DENSITY_INTERVAL_S))
    return None if curves.empty else Density(node, str(shares["tier"].iloc[0]), resource, item, curves, shares)


# ---- time per tier -------------------------------------------------------------------------------------------------


def tier_levels(data: SweepData) -> pd.DataFrame:
    """`tiers.levels` of every trial that says more than what the client saw; empty if none does."""
    by_trial, nothing, order = data.run_samples, data.samples.head(0), order_of(data.trials)
    parts = []
    known = data.trials.dropna(subset=["run_start_s", "run_end_s", "response_time_mean_ms", "interactions"])
    for trial in known.assign(errors=known["errors"].fillna(0)).itertuples():
        raw, done = data.raw_trials.get(trial.trial), trial.interactions + trial.errors
        web_ms = None if raw is None or not done else web_time_ms(raw, done)
        levels = tiers.levels(trial, by_trial.get(trial.trial, nothing), web_ms, order)
        if len(levels) > 1:
            parts.append(levels)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def web_time_ms(raw: RawTrial, interactions: int) -> float | None:
    """Time within the web servers per interaction, by their access logs of the run phase, the pictures of the page
    included; None without the log of one of them."""
    logs = raw.remember(web_times)
    if logs is None:
        return None
    start, end = raw.run
    inside = [t[(t["t_s"] >= start) & (t["t_s"] < end)] for t in logs.values()]
    return 1000 * sum(float((t["t_s"] - t["start_s"]).sum()) for t in inside) / interactions


def web_times(raw: RawTrial) -> dict[str, pd.DataFrame] | None:
    """Access logs of the first tier, only the columns start_s, t_s, image, because a sweep's whole logs may not fit
    into memory. None if a log is missing or cannot be read."""
    try:
        logs = {n: weblog.access_log(raw.required(f"nodes/{n}/logs/access.log")) for n in raw.logged}
    except DataError:  # the validity of the trial says so (check C5)
        return None
    return {n: log[["start_s", "t_s", "image"]] for n, log in logs.items()} or None


# ---- load against throughput -------------------------------------------------------------------------------------


def load_sources(data: SweepData, trials: pd.DataFrame) -> list[Source]:
    """Windows of each node that has data, and of the whole system; logs of requests before readings of each second."""
    parts: dict[str, list[tuple[str, str, float, pd.DataFrame]]] = {}
    for trial in trials.dropna(subset=["run_start_s", "run_end_s"]).itertuples():
        sources = [*_of_client(data, trial)]
        raw = data.raw_trials.get(trial.trial)
        if raw is not None:
            sources += [*_of_web(raw, trial), *_of_trace(raw, trial)]
        named = {node for node, *_ in sources}
        sources += [entry for entry in _of_readings(data, trial) if entry[0] not in named]
        for node, tier, where, width_s, frame in sources:
            labelled = frame.assign(trial=trial.trial, users=trial.users)
            parts.setdefault(node, []).append((tier, where, width_s, labelled))
    return [_joined(node, entries) for node, entries in parts.items()]


def _joined(node: str, entries: list[tuple[str, str, float, pd.DataFrame]]) -> Source:
    """Trials of the most common source, and a sentence on how many lack it (a missing log)."""
    widths = [width for _, _, width, _ in entries]
    width = max(set(widths), key=lambda w: (widths.count(w), -w))
    kept = [e for e in entries if e[2] == width]
    lacking = len(entries) - len(kept)
    where = kept[0][1] + (f" ({lacking} {'trial' if lacking == 1 else 'trials'} without it)" if lacking else "")
    return Source(node, kept[0][0], where, width, pd.concat([e[3] for e in kept], ignore_index=True))


def _frame(begin_s, end_s, trial, width_s: float = WINDOW_S) -> pd.DataFrame:
    load, rate = windows(begin_s, end_s, trial.run_start_s, trial.run_end_s, width_s)
    return pd.DataFrame({"load": load, "rate": rate})


def _of_client(data: SweepData, trial):
    done = data.interactions[data.interactions["trial"] == trial.trial]
    if len(done):
        end = done["t_s"].to_numpy()
        begin = end - done["response_time_ms"].to_numpy() / 1000
        yield "whole system", "all", "interactions by the client's log", WINDOW_S, _frame(begin, end, trial)


def _of_web(raw: RawTrial, trial):
    for name, log in (raw.remember(web_times) or {}).items():
        pages = log[~log["image"]]
        if len(pages):
            yield (
                name,
                raw.nodes[name].tier,
                "pages by its access log",
                WINDOW_S,
                _frame(pages["start_s"], pages["t_s"], trial),
            )


def _of_trace(raw: RawTrial, trial):
    """The middleware's trace: statements at each replica, and at the middleware from the choice on."""
    for name in raw.nodes:
        path: Path | None = raw.path(f"nodes/{name}/logs/middleware_trace.csv")
        if path is None:
            continue
        used = trace.middleware_trace(path)
        used = used[used["begin_ns"] > 0]
        asked = used["choice_ns"].where(used["choice_ns"] > 0, used["begin_ns"])
        where = "statements by the middleware's trace"
        yield name, raw.nodes[name].tier, where, WINDOW_S, _frame(asked / 1e9, used["end_ns"] / 1e9, trial)
        for replica, rows in used.groupby("replica"):
            tier = raw.nodes[str(replica)].tier if str(replica) in raw.nodes else raw.system.order[-1]
            yield str(replica), tier, where, WINDOW_S, _frame(rows["begin_ns"] / 1e9, rows["end_ns"] / 1e9, trial)


def _of_readings(data: SweepData, trial):
    """Number running at the end of each second against the number completed in it."""
    mine = data.run_samples.get(trial.trial, data.samples.head(0))
    mine = mine[mine["metric"].isin(COUNTED)]
    for node, tier in mine[["node", "tier"]].drop_duplicates().itertuples(index=False):
        readings = {s.measure.name: s for s in course.of_node(mine, node, ("running", "executed"))}
        if len(readings) == 2:
            running, executed = (_by_second(readings[name]) for name in ("running", "executed"))
            frame = pd.DataFrame({"load": running, "rate": executed}).dropna().reset_index(drop=True)
            where = f"readings of each second ({readings['running'].where}; {readings['executed'].where})"
            if len(frame):
                yield node, tier, where, SECOND_S, frame


def _by_second(series: course.Series) -> pd.Series:
    known = np.isfinite(series.value)
    return pd.Series(series.value[known]).groupby(np.round(series.t_s[known])).mean()
