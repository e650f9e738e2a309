"""What the files of a test's load generator say: its requests, its users, and which parts of it are trials."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.errors import DataError
from ntier_analysis.importing.folder import THINK_S
from ntier_analysis.importing.loads import Part, plateaus, read_loads
from ntier_analysis.importing.run import Run
from ntier_analysis.parsers.gatling import gatling
from ntier_analysis.parsers.generated import Generated, steps
from ntier_analysis.parsers.jmeter import jtl
from ntier_analysis.parsers.k6 import k6
from ntier_analysis.parsers.locust import locust
from ntier_analysis.validity.imported import NO_THINK
from ntier_analysis.wording import clock, counted, moment

IDLE = 0.2
"""Share of their time from which on users were idle: as far as Little's law is ever off by few of them (MOST_OFF)."""
NO_THREADS = (
    "samples within others (redirects, embedded files, nested transactions) count as interactions of their own, unless "
    "they have JMeter's numbers (Home-0, Home-1)"
)
"""What is not known of a JTL that does not tell threads apart."""


@dataclass(frozen=True)
class Load:
    """What the load generator's files say: all requests with their client, by completion (None: only sums), active
    users (0 rows: not told)."""

    done: pd.DataFrame | None
    users: pd.DataFrame
    totals: pd.DataFrame | None
    think_s: float
    unknown: tuple[str, ...]
    name: str
    """The first file, for messages."""


def load_of(run: Run) -> Load:
    """Raises DataError for a file that cannot be read as what it is given as."""
    if run.jtl:
        return _of_jmeter(run)
    paths = run.k6 or run.locust or run.gatling
    if not paths:
        return Load(None, steps([], []), None, float("nan"), (), str(run.loads))
    read = k6 if run.k6 else locust if run.locust else gatling
    files = [(path, read(path)) for path in paths]
    _refuse_idle(run, files)
    requests = [(path, part) for path, part in files if part.requests is not None]
    sums = [(path, part) for path, part in files if part.requests is None]
    if len(sums) > 1:
        raise DataError(f"{sums[1][0]}: a second history; Locust's master writes one for all its workers")
    _refuse_same([(path, part.requests) for path, part in requests])
    users = sums[0][1].users if sums else _summed(_of_running([part for _, part in requests]))
    told = dict.fromkeys(note for _, part in (requests or sums) for note in part.notes)
    if not requests:
        return Load(None, users, sums[0][1].totals, sums[0][1].think_s, tuple(told), str(paths[0]))
    # of each request, so a client counts as often as it asked
    weights = [max(1, len(part.requests)) for _, part in requests]
    think = float(np.average([_think_s(part) for _, part in requests], weights=weights))
    parts = [part.requests.assign(client=f"client{n}") for n, (_, part) in enumerate(requests, start=1)]
    done = pd.concat(parts, ignore_index=True).sort_values("t_s", kind="stable", ignore_index=True)
    done["bytes"] = done["bytes"].round().astype("Int64")
    return Load(done, users, None, think, tuple(told), str(paths[0]))


def _of_jmeter(run: Run) -> Load:
    """All samples that count as an interaction, and the threads at the same time: each JMeter counts its own, and the
    file of a distributed test has several."""
    parts, threads, ends, not_known = [], [], [], []
    read = [(path, jtl(path, stamp=run.stamp)) for path in run.jtl]
    _refuse_same(read)
    for path, frame in read:
        if frame.empty:
            raise DataError(f"{path}: no samples")
        told = frame.attrs.pop("threads_told")
        if not told:
            not_known = [NO_THREADS]
            run.notices.append(f"{path}: threads are not told apart (threadName): {NO_THREADS}")
        hosts = sorted(frame["host"].unique())
        names = {host: f"client{number}" for number, host in enumerate(hosts, start=len(threads) + 1)}
        frame["client"] = frame.pop("host").map(names)
        for _, own in frame.groupby("client", sort=False):
            threads.append(steps(own["start_s"], own["threads"]).dropna())
            ends.append(float(own["t_s"].max()) + _longest_pause_s(own))
        if len(hosts) > 1:
            run.notices.append(f"{path}: {len(hosts)} JMeters ({', '.join(hosts)[:200]}); their threads are added")
        if frame["transaction"].any():
            run.notices.append(
                f"{path}: {int(frame['transaction'].sum())} transactions are the interactions; the "
                f"{int((~frame['transaction']).sum())} samples inside and beside them are left out"
            )
            frame = frame[frame["transaction"]]
        elif frame["part"].any():
            n, same = int(frame["part"].sum()), "thread" if told else "name"
            run.notices.append(
                f"{path}: {counted(n, 'sample')} within another one of the same {same} left out (redirects, embedded "
                f"files, what a controller sums up); the other {len(frame) - n} are the interactions"
            )
            frame = frame[~frame["part"]]
        parts.append(frame)
    frame = pd.concat(parts, ignore_index=True).sort_values("t_s", kind="stable", ignore_index=True)
    frame["bytes"] = frame["bytes"].round().astype("Int64")
    return Load(frame, _summed(_ended(threads, ends)), None, float("nan"), tuple(not_known), str(run.jtl[0]))


def _refuse_idle(run: Run, files: list[tuple[Path, Generated]]) -> None:
    """Users who wait for arrivals are no users of a closed load, nor workers: their number says nothing of the load."""
    for path, part in files:
        if not run.load_model and part.idle > IDLE:
            raise DataError(
                f"{path}: its users were in no iteration for {100 * part.idle:.0f} % of their time, as if requests "
                "came at a rate: then give --load-model open, and --loads or --users; else --load-model work, or "
                "closed (minIterationDuration is a wait, too), perhaps with --think-time"
            )


def _think_s(part: Generated) -> float:
    """NaN where users waited outside their iterations, too: a pause of which the file has no length."""
    return part.think_s if part.idle <= IDLE else float("nan")


def _refuse_same(files: list[tuple[Path, pd.DataFrame]]) -> None:
    """One client twice would be twice the users and twice the throughput, and Little's law would hold."""
    for (one, a), (other, b) in itertools.combinations(files, 2):
        if a.equals(b):
            raise DataError(f"{other}: the same requests as {one}; expected a file of another client")


def _of_running(clients: list[Generated]) -> list[pd.DataFrame]:
    """The users of each client, 0 of one that has ended: its file ends with those that it had."""
    threads, ends = [client.users for client in clients], []
    for client in clients:
        assert client.requests is not None
        told_s = client.users["t_s"].max() if len(client.users) else 0.0
        ends.append(max(float(client.requests["t_s"].max()) + _longest_pause_s(client.requests), float(told_s)))
    return _ended(threads, ends, max(float(c.requests["t_s"].max()) for c in clients if c.requests is not None))


def _longest_pause_s(done: pd.DataFrame) -> float:
    """Of one client: without any request."""
    begun = done.sort_values("start_s", kind="stable")
    pauses = begun["start_s"].to_numpy(float)[1:] - begun["t_s"].cummax().to_numpy(float)[:-1]
    return float(max(pauses.max(initial=0.0), 0.0))


def _ended(threads: list[pd.DataFrame], ends: list[float], last_s: float = 0.0) -> list[pd.DataFrame]:
    """With 0 users where a client has ended while others go on: its file still ends with those that it had.
    `last_s`: the last request of all, where files tell users apart from requests."""
    last = max((c["t_s"].iloc[-1] for c in threads if len(c)), default=0.0)
    last = max(last, last_s)
    return [
        steps([*c["t_s"], end], [*c["users"], 0.0]) if len(c) and end < last else c
        for c, end in zip(threads, ends, strict=True)
    ]


def _summed(clients: list[pd.DataFrame]) -> pd.DataFrame:
    """Active users of several clients together."""
    known = [c for c in clients if len(c)]
    if len(known) < 2:
        return known[0] if known else steps([], [])
    changes = pd.concat([c.assign(users=c["users"].diff().fillna(c["users"])) for c in known]).sort_values("t_s")
    return steps(changes["t_s"], changes["users"].cumsum())


def parts_of(run: Run, load: Load) -> list[Part]:
    """The trials: those of the file of loads, the one that is told, or the plateaus."""
    first = None if load.done is None else float(load.done["start_s"].min())
    if run.loads is not None:
        return _marked(load, read_loads(run.loads, first))
    parts = [] if run.users else plateaus(load.users, run.ramp_up_s, run.ramp_down_s)
    if run.jtl and len(parts) < 2 and not (parts and _in_turn(load)):
        return [_of_threads(run, load)]
    if run.users:
        return [_whole(run, load)]
    if not parts:
        told = (
            "its users never stay the same for 10 s" if len(load.users) else "it does not say how many users there were"
        )
        raise DataError(
            f"{load.name}: {told}; say which parts of it are loads: --users N for all of it, or --loads FILE"
        )
    told = "; ".join(f"{counted(p.users, 'user')} {moment(p.start_s)} to {clock(p.end_s)}" for p in parts)
    run.notices.append(
        f"{load.name}: {counted(len(parts), 'plateau')} of the users: {told} (--loads says otherwise; ramps, plateaus "
        "of less than 10 s and the first tenth of each are left out)"
    )
    return _marked(load, parts)


def _marked(load: Load, parts: list[Part]) -> list[Part]:
    if load.done is not None and len(parts) > 1:
        load.done.attrs["several"] = True
    return parts


def _whole(run: Run, load: Load) -> Part:
    """One load that the options tell."""
    frame = load.done if load.done is not None else load.totals
    assert frame is not None
    first = float((frame["start_s"] if load.done is not None else frame["t_s"]).min())
    last = float((frame["start_s"] if load.done is not None else frame["t_s"]).max())
    start, end = first + (run.ramp_up_s or 0.0), last - (run.ramp_down_s or 0.0)
    if not end > start:
        raise DataError(f"{load.name}: nothing is left between ramp-up and ramp-down of {last - first:.0f} s")
    assert run.users is not None
    return Part(start, end, run.users)


def _in_turn(load: Load) -> bool:
    """Whether one client had ended when another began: then they never had all their threads together."""
    assert load.done is not None
    clients = load.done.groupby("client")
    return bool(clients["start_s"].min().max() > clients["start_s"].max().min())


def _of_threads(run: Run, load: Load) -> Part:
    """The run phase of a JTL: when all clients had all their threads, unless told otherwise."""
    done = load.done
    assert done is not None
    threads = sum(part["threads"].max() for _, part in done.groupby("client"))
    users = run.users or (0 if pd.isna(threads) else int(threads))
    if not users:
        raise DataError(f"{run.jtl[0]}: users are missing, and the JTL has no column allThreads: give --users")
    begins, ends = [], []
    for _, part in done.groupby("client"):
        full = part[part["threads"] == part["threads"].max()]
        full = full if len(full) else part
        begins.append(full["start_s"].min() if run.ramp_up_s is None else part["start_s"].min() + run.ramp_up_s)
        ends.append(full["start_s"].max() if run.ramp_down_s is None else part["start_s"].max() - run.ramp_down_s)
    start, end = float(max(begins)), float(min(ends))
    first, last = float(done["start_s"].min()), float(done["t_s"].max())
    if not end > start:
        raise DataError(f"{run.jtl[0]}: nothing is left between ramp-up and ramp-down of {last - first:.0f} s")
    run.notices.append(
        f"{run.jtl[0]}: run phase from {start - first:.0f} s to {end - first:.0f} s after the first request"
        + (" (all threads active; --ramp-up and --ramp-down change it)" if run.ramp_up_s is None else "")
    )
    return Part(start, end, users)


def think_of(run: Run, load: Load, rows: list[dict]) -> tuple[str | None, float, tuple[str, ...]]:
    """Load model (None: closed, and no other was given), mean think time, and what is assumed there. If neither the
    options nor the file give the think time, it is N/X - R of the lowest load; for a JTL it is the default."""
    if run.load_model in (LoadModel.OPEN, LoadModel.WORK):
        lost = ("requests without an answer: the file lacks them",) if run.load_model == LoadModel.OPEN else ()
        return run.load_model, float("nan"), lost
    model = run.load_model or None
    if run.think_time_s is not None:
        return model, run.think_time_s, ()
    if run.jtl:
        return model, THINK_S, ()
    low = min(rows, key=lambda row: row["users"])
    wait_s = low["response_time_mean_ms"] / 1000
    done_per_s = low["throughput_per_s"] + (low.get("errors") or 0) / (low["run_end_s"] - low["run_start_s"])
    law_s = low["users"] / done_per_s - wait_s if done_per_s > 0 else float("nan")
    measured, lowest = np.isfinite(load.think_s), counted(low["users"], "user")
    think_s = load.think_s if measured else law_s
    if not np.isfinite(think_s):
        return model, THINK_S, ()
    if model is None and think_s < NO_THINK * wait_s:
        run.notices.append(
            f"{load.name}: users do not think (of {lowest}, {1000 * think_s:.3g} ms against a response "
            f"time of {1000 * wait_s:.3g} ms): treated as workers (load model work); --load-model and --think-time "
            "set it"
        )
        return LoadModel.WORK, float("nan"), (f"think times (taken as 0: {1000 * think_s:.3g} ms by the file)",)
    think_s = max(think_s, 0.0)
    if measured:
        return model, think_s, (f"the think time ({think_s:.3g} s: what k6's iterations took beside their requests)",)
    told = f"{think_s:.3g} s: N/X - R at the lowest load, {lowest}, where the law then fits by itself"
    return model, think_s, (f"the think time ({told})",)
