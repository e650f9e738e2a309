"""What collectors and a client would have written of a simulated run: the frames of a bring-your-own-data import."""

from __future__ import annotations

import numpy as np
import pandas as pd

from queueing.cases import Case, View
from queueing.model import Part, Run
from queueing.parts import Log

T0 = 1_790_000_000.0
CELL_S = 0.01
"""Resolution of the record of busy time."""
RANDOM_LOSS = 0.003
JITTER = 0.02
"""Scatter of a reading's time, as a share of the interval."""
NODE_NAMES = ("{tier}{n}", "{tier}-{n}", "vm-{tier}-0{n}")


def trial_name(load: int) -> str:
    return f"u{load:02d}"


def start(load: int) -> float:
    """When the ramp-up of the sweep's trial number `load` begins."""
    return T0 + 1000.0 * load


def node_name(case: Case, tier: str, node: int) -> str:
    return NODE_NAMES[case.seed % len(NODE_NAMES)].format(tier=tier, n=node + 1)


def think_s(case: Case, runs: list[Run]) -> float:
    """The think time that was set. Users that come in waves have none of their own: theirs is what is measured over the
    sweep, the seconds of all users without those in which they waited for an answer, per interaction."""
    think = case.system.think
    answered = [run.answered() for run in runs]
    number = sum(map(len, answered))
    if think.wave is None or not number:
        return think.mean_s
    all_s = sum(run.users * (run.end_s - run.ramp_s) for run in runs)
    return max(0.01, (all_s - sum(float(a[:, 1].sum()) for a in answered)) / number)


def trial_row(case: Case, load: int, run: Run, thinks_s: float) -> dict:
    """One row of the trials."""
    answered = run.answered()
    return {
        "sweep": case.name,
        "trial": trial_name(load),
        "topology": "/".join(str(case.system.nodes[t]) for t in case.system.tiers),
        "tiers": ",".join(case.system.tiers),
        "users": round(run.users / case.scale),
        "users_real": run.users,
        "scale": case.scale,
        "think_time_s": thinks_s,
        "throughput_per_s": len(answered) / (run.end_s - run.ramp_s),
        "response_time_mean_ms": 1000 * answered[:, 1].mean() if len(answered) else 0.0,
        "run_start_s": start(load) + run.ramp_s,
        "run_end_s": start(load) + run.end_s,
    }


def interaction_rows(case: Case, load: int, run: Run) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sweep": case.name,
            "trial": trial_name(load),
            "t_s": (start(load) + run.done[:, 0] + run.done[:, 1]).round(3),
            "interaction": np.where(run.done[:, 2] > 0, "Post", "View"),
            "response_time_ms": (1000 * run.done[:, 1]).round(),
        }
    )


# ---- what a part did ------------------------------------------------------------------------------------------------


def elapsed(times: list[float], at: np.ndarray) -> np.ndarray:
    """Integral over time of the number of these events up to each moment."""
    t = np.asarray(times)
    total = np.concatenate([[0.0], np.cumsum(t)])
    n = np.searchsorted(t, at, side="right")
    return n * at - total[n]


def count(times: list[float], at: np.ndarray) -> np.ndarray:
    return np.searchsorted(np.asarray(times), at, side="right")


def in_service(log: Log, servers: int, at: np.ndarray) -> np.ndarray:
    """Server-seconds in use up to each moment."""
    begins, ends = [b for b, _ in log.seized], [e for _, e in log.seized]
    return elapsed(log.began, at) - elapsed(log.left, at) + servers * (elapsed(begins, at) - elapsed(ends, at))


def anything(log: Log, at: np.ndarray) -> np.ndarray:
    """Seconds up to each moment in which something was in service."""
    t = np.concatenate([log.began, log.left])
    order = np.argsort(t, kind="stable")
    t, n = t[order], np.cumsum(np.repeat([1, -1], [len(log.began), len(log.left)])[order])
    edges = np.append(t, np.inf)
    on = n > 0
    begins, ends = edges[:-1][on], edges[1:][on]
    return elapsed(list(begins), at) - elapsed(list(ends), at)


def taken_by_another(part: Part, shift_s: float, at: np.ndarray) -> np.ndarray:
    """Share of the capacity that something else has, in the cells that end at each moment but the first."""
    middle = (at[:-1] + at[1:]) / 2 + shift_s
    return np.where(np.searchsorted(part.switches, middle) % 2 == 1, part.share, 0.0)


def node_use(part: Part, log: Log, shift_s: float, end_s: float) -> tuple[np.ndarray, np.ndarray]:
    """(edges of cells, used share of a station's capacity summed up to them), whoever used it."""
    edges = np.arange(0.0, end_s + 2 * CELL_S, CELL_S)
    own = np.diff(in_service(log, part.servers, edges)) / CELL_S / part.servers
    other = taken_by_another(part, shift_s, edges)
    return edges, np.concatenate([[0.0], np.cumsum(CELL_S * (other + (1 - other) * own))])


# ---- samples --------------------------------------------------------------------------------------------------------


def readings(rng: np.random.Generator, run: Run, step: float) -> np.ndarray:
    """When a collector reads, s from the start of the ramp-up."""
    at = np.arange(run.ramp_s - 2.0 + rng.uniform(0, step), run.end_s, step)
    return np.sort(at + np.clip(rng.normal(0, JITTER * step, len(at)), -0.4 * step, 0.4 * step))


def cpu(case: Case, run: Run, row: int, shift_s: float, at: np.ndarray, rng: np.random.Generator) -> dict:
    """utilization_pct of the node and, on several cores, core_max_pct of the busiest."""
    part, log = run.system.parts[row], run.logs[row]
    edges, total = node_use(part, log, shift_s, run.end_s)
    share = 100 * np.diff(np.interp(at, edges, total)) / np.diff(at)
    noise = rng.normal(0, case.view.noise_pct, len(share))
    columns = {"utilization_pct": np.maximum(share + noise, 0.0)}
    if case.view.cores and part.servers > 1:
        columns["core_max_pct"] = np.clip(busiest_core(run, row, share, at, rng) + noise, 0.0, 100.0)
    return columns


def busiest_core(run: Run, row: int, share: np.ndarray, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The single-threaded stage's core if there is one; else the load is spread, unevenly by a tenth or so."""
    part = run.system.parts[row]
    most = np.minimum(100.0, share * (1 + np.abs(rng.normal(0.1, 0.1, len(share)))))
    for other, log in zip(run.system.parts, run.logs, strict=True):
        if (other.tier, other.node, other.resource) == (part.tier, part.node, "thread"):
            thread = 100 * np.diff(in_service(log, 1, at)) / np.diff(at)
            most = np.maximum(most, np.minimum(thread, 100.0 * part.servers))
    return most


def disk(case: Case, run: Run, row: int, shift_s: float, at: np.ndarray) -> dict:
    """utilization_pct = share of time with anything in service, as iostat's %util; queue: aqu-sz, wait_ms: await."""
    part, log = run.system.parts[row], run.logs[row]
    seconds = np.diff(at)
    busy = np.diff(anything(log, at)) / seconds
    if part.share:
        edges = np.arange(0.0, run.end_s + 2 * CELL_S, CELL_S)
        other = np.concatenate([[0.0], np.cumsum(CELL_S * taken_by_another(part, shift_s, edges))])
        on = np.diff(np.interp(at, edges, other)) / seconds
        busy = on + (1 - on) * busy
    columns = {"utilization_pct": np.clip(100 * busy, 0.0, 100.0)}
    if case.view.queues:
        inside = np.diff(elapsed(log.came, at) - elapsed(log.left, at)) / seconds
        total = np.concatenate([[0.0], np.cumsum(log.sojourn)])
        done = count(log.left, at)
        with np.errstate(invalid="ignore", divide="ignore"):
            wait = np.where(np.diff(done) > 0, 1000 * np.diff(total[done]) / np.diff(done), 0.0)
        columns |= {"queue": np.maximum(inside, 0.0), "wait_ms": wait}
    return columns


def pool(part: Part, log: Log, at: np.ndarray) -> dict:
    """Gauges: places taken, requests that wait for one."""
    taken = count(log.began, at[1:]) - count(log.left, at[1:])
    waiting = count(log.came, at[1:]) - count(log.began, at[1:])
    return {"utilization_pct": 100.0 * taken / part.servers, "waiting": waiting.astype(float)}


def sample_rows(case: Case, load: int, run: Run, shift_s: float) -> pd.DataFrame:
    """Samples of one trial."""
    rng = np.random.default_rng([case.seed, load, 2])
    view, rows = case.view, []
    for row, part in enumerate(run.system.parts):
        if not part.measured:
            continue
        at = readings(rng, run, view.cpu_s if part.resource == "cpu" else max(view.slow_s, view.cpu_s))
        item, resource = "", part.resource
        if part.key == case.built.blind:
            # The node has other samples, but none of its CPU.
            resource, values = "memory", {"used_pct": np.clip(rng.normal(60, 1, len(at) - 1), 0, 100)}
        elif part.resource == "cpu":
            values = cpu(case, run, row, shift_s, at, rng)
        elif part.resource == "disk":
            values = disk(case, run, row, shift_s, at)
        else:
            resource, item = part.resource.split(":")
            values = pool(part, run.logs[row], at)
        node = node_name(case, part.tier, part.node)
        for metric, value in values.items():
            given = {"node": node, "tier": part.tier, "resource": resource, "item": item, "metric": metric}
            rows.append(pd.DataFrame({"t_s": at[1:], **given, "value": value}))
    frame = _lost(pd.concat(rows, ignore_index=True), run, view, rng)
    frame["t_s"] = (frame["t_s"] + start(load)).round(4)
    return frame.assign(sweep=case.name, trial=trial_name(load)).round({"value": 3})


def _lost(frame: pd.DataFrame, run: Run, view: View, rng: np.random.Generator) -> pd.DataFrame:
    """Without samples that were lost one by one, and without one node's for a while."""
    keep = rng.random(len(frame)) >= RANDOM_LOSS
    if view.gap_s > 0:
        node = str(rng.choice(sorted(set(frame["node"]))))
        at = rng.uniform(run.ramp_s, run.end_s - view.gap_s)
        keep &= ~((frame["node"] == node) & (frame["t_s"] >= at) & (frame["t_s"] < at + view.gap_s)).to_numpy()
    return frame[keep]


def frames(case: Case, runs: list[Run], first: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
    """Contents of trials.csv, samples.csv and, if the case has them, interactions.csv. `first`: number of the first
    trial (another one has other noise)."""
    thinks_s, numbered = think_s(case, runs), list(enumerate(runs, first))
    trials = pd.DataFrame([trial_row(case, i, run, thinks_s) for i, run in numbered])
    samples = pd.concat([sample_rows(case, i, run, run.shift_s) for i, run in numbered], ignore_index=True)
    done = [interaction_rows(case, i, run) for i, run in numbered] if case.view.interactions else None
    return trials, samples, pd.concat(done, ignore_index=True) if done else None
