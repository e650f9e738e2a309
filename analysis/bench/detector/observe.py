"""What collectors and a client would have written of a simulated run: the files of a bring-your-own-data import."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from detector.kernel import CELL_S, PERIOD_S
from detector.network import DELAY_WIDTH, THINK_S, Run, Station
from detector.plan import Case, View

T0 = 1_790_000_000.0
TICK_S = 0.01
RAMP_S = 20.0
LAG_S = 0.004
"""Scatter of the kernel's accounting: it hands out and counts CPU time in slices (docs/validity.md: samples of a pegged
node read 70 to 124 %)."""
RANDOM_LOSS = 0.003


def trial_rows(case: Case, load: int, run: Run) -> dict:
    """One row of trials.csv."""
    answered = run.answered()
    return {
        "sweep": case.name,
        "trial": trial_name(case, load),
        "topology": "/".join(str(n) for n in case.network.nodes.values()) + "M",
        "users": round(run.users / case.scale),
        "users_real": run.users,
        "scale": case.scale,
        "think_time_s": THINK_S,
        "throughput_per_s": len(answered) / (run.end_s - run.ramp_s),
        "response_time_mean_ms": 1000 * answered[:, 1].mean() if len(answered) else 0.0,
        "run_start_s": start(load) + run.ramp_s,
        "run_end_s": start(load) + run.end_s,
    }


def trial_name(case: Case, load: int) -> str:
    return f"u{load:02d}"


def start(load: int) -> float:
    """When the ramp-up of the sweep's trial number `load` begins."""
    return T0 + 1000.0 * load


def interaction_rows(case: Case, load: int, run: Run) -> pd.DataFrame:
    ended = run.finished[:, 0] + run.finished[:, 1]
    return pd.DataFrame(
        {
            "sweep": case.name,
            "trial": trial_name(case, load),
            "t_s": (start(load) + ended).round(3),
            "interaction": np.where(run.finished[:, 2] > 0, "Search", "ViewStory"),
            "response_time_ms": (1000 * run.finished[:, 1]).round(),
        }
    )


def sample_rows(case: Case, load: int, run: Run, view: View, seed: int) -> pd.DataFrame:
    """samples.csv of one trial: CPUs at view.interval_s; disks, networks and pools at view.slow_s."""
    rng = np.random.default_rng([seed, 2])
    begin, end = run.ramp_s - 2.0, run.end_s
    parts = []
    for row, s in enumerate(run.network.stations):
        if not s.measured or s.width >= DELAY_WIDTH:
            continue
        step = view.interval_s if s.resource == "cpu" else max(view.slow_s, view.interval_s)
        at = _readings(rng, begin, end, step, view)
        values = cpu(run, row, s, at, view, rng) if s.resource == "cpu" else device(run, row, at)
        if s.resource == "disk" and view.queues:
            values |= queue(run, row, at)
        parts += [_frame(s.tier, s.node, s.resource, "", metric, at[1:], v) for metric, v in values.items()]
    for row, p in enumerate(run.network.pools):
        if p.measured:
            at = _readings(rng, begin, end, max(view.slow_s, view.interval_s), view)
            values = pool(run, row, p.size, at)
            parts += [_frame(p.tier, p.node, "pool", p.item, metric, at[1:], v) for metric, v in values.items()]
    frame = pd.concat(parts, ignore_index=True)
    frame = _lost(frame, run, view, rng)
    frame["t_s"] = (frame["t_s"] + start(load)).round(4)
    return frame.assign(sweep=case.name, trial=trial_name(case, load)).round({"value": 3})


def _frame(
    tier: str, node: str, resource: str, item: str, metric: str, t: np.ndarray, value: np.ndarray
) -> pd.DataFrame:
    return pd.DataFrame(
        {"t_s": t, "node": node, "tier": tier, "resource": resource, "item": item, "metric": metric, "value": value}
    )


def _readings(rng: np.random.Generator, begin: float, end: float, step: float, view: View) -> np.ndarray:
    at = np.arange(begin + rng.uniform(0, step), end, step)
    return np.sort(at + np.clip(rng.normal(0, view.jitter_s, len(at)), -0.4 * step, 0.4 * step))


def _cumulated(cells: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Integral of a record up to each time, linear inside a cell."""
    total = np.concatenate([[0.0], np.cumsum(cells, dtype=float)])
    return np.interp(at, CELL_S * np.arange(len(total)), total)


def cpu(run: Run, row: int, s: Station, at: np.ndarray, view: View, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """utilization_pct, and throttled_pct where there is a quota (as the collector of control groups computes it)."""
    lag = rng.uniform(0, LAG_S, len(at)) if s.quota is not None else 0.0
    used = _cumulated(run.record.used[row], at - lag)
    if view.ticks:
        used = TICK_S * np.floor(used / TICK_S)
    seconds = np.diff(at)
    capacity = s.width if s.quota is None else s.quota
    share = 100 * np.diff(used) / seconds / capacity + rng.normal(0, view.noise_pct, len(seconds))
    columns = {"utilization_pct": np.maximum(share, 0.0)}
    if s.quota is not None:
        index = (at / CELL_S).astype(int)
        counted = np.concatenate([[0], np.cumsum(run.record.throttled[row])])
        periods = np.maximum(seconds / PERIOD_S - 1, 1)
        columns["throttled_pct"] = 100 * np.diff(counted[np.minimum(index, len(counted) - 1)]) / periods
    return columns


def device(run: Run, row: int, at: np.ndarray) -> dict[str, np.ndarray]:
    """utilization_pct = share of the time in which something was in service, as disks report it."""
    return {"utilization_pct": 100 * np.diff(_cumulated(run.record.busy[row], at)) / np.diff(at)}


def queue(run: Run, row: int, at: np.ndarray) -> dict[str, np.ndarray]:
    """Requests waiting or in service on average, and how long each of them took, as iostat's aqu-sz and await."""
    inside = CELL_S * np.diff(_cumulated(run.record.jobs[row], at))
    done = np.diff(_cumulated(run.record.done[row], at))
    wait_ms = 1000 * np.divide(inside, done, out=np.zeros(len(inside)), where=done > 0)
    return {"queue": inside / np.diff(at), "wait_ms": wait_ms}


def pool(run: Run, row: int, size: int, at: np.ndarray) -> dict[str, np.ndarray]:
    """Gauges: places taken, requests waiting for one."""
    index = np.minimum((at[1:] / CELL_S).astype(int), run.record.taken.shape[1] - 1)
    return {
        "utilization_pct": 100 * run.record.taken[row][index] / size,
        "waiting": run.record.waiting[row][index].astype(float),
    }


def _lost(frame: pd.DataFrame, run: Run, view: View, rng: np.random.Generator) -> pd.DataFrame:
    """Without samples that were lost one by one, and without one node's for a while."""
    keep = rng.random(len(frame)) >= RANDOM_LOSS
    if view.gap_s > 0:
        node = str(rng.choice(sorted(set(frame["node"]))))
        at = rng.uniform(run.ramp_s, run.end_s - view.gap_s)
        keep &= ~((frame["node"] == node) & (frame["t_s"] >= at) & (frame["t_s"] < at + view.gap_s)).to_numpy()
    return frame[keep]


def frames(case: Case, runs: list[Run]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
    """Contents of trials.csv, samples.csv and, if the case has them, interactions.csv."""
    trials = pd.DataFrame([trial_rows(case, i, run) for i, run in enumerate(runs)])
    samples = [sample_rows(case, i, run, case.view, case.seed + i) for i, run in enumerate(runs)]
    done = [interaction_rows(case, i, run) for i, run in enumerate(runs)] if case.view.interactions else None
    return trials, pd.concat(samples, ignore_index=True), pd.concat(done, ignore_index=True) if done else None


def write(folder: Path, case: Case, runs: list[Run]) -> None:
    """The files of an import."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in zip(("trials", "samples", "interactions"), frames(case, runs), strict=True):
        if frame is not None:
            frame.to_csv(folder / f"{name}.csv", index=False)
