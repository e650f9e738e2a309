"""A good import of a known truth, small enough to be spoilt many times: three loads of a system whose database is the
limit at 100/s (5 ms of pure service, 7 s of thinking)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

RUN_S, T0, THINK_S, LIMIT = 60.0, 1_790_000_000.0, 7.0, 100.0
LOADS = (200, 1000, 1400)
WORK = {"web1": 0.1, "app1": 0.4, "middleware1": 0.3, "db1": 1.0, "client1": 0.2}
"""Share of each node's capacity at the limit."""

Files = dict[str, pd.DataFrame]


def files(interactions: bool = True) -> Files:
    """Contents of trials.csv, samples.csv and interactions.csv."""
    rng = np.random.default_rng(1)
    trials, samples, done = [], [], []
    for number, users in enumerate(LOADS):
        rate = min(users / (THINK_S + 0.005), LIMIT)
        response_ms = 1000 * (users / rate - THINK_S)
        start = T0 + 1000 * number
        key = {"sweep": "s", "trial": f"u{users:05d}"}
        n = round(rate * RUN_S)
        times = start + RUN_S * (np.arange(n) + 0.5) / n
        took = response_ms * rng.uniform(0.9, 1.1, n)
        took *= response_ms / took.mean()
        trials.append(key | {
            "topology": "1/1/1/1M", "users": users, "throughput_per_s": n / RUN_S, "think_time_s": THINK_S,
            "response_time_mean_ms": response_ms, "run_start_s": start, "run_end_s": start + RUN_S,
        })  # fmt: skip
        for node, work in WORK.items():
            value = np.clip(100 * work * rate / LIMIT + rng.uniform(-2, 2, 60), 0, 100)
            samples.append(pd.DataFrame(key | {
                "t_s": start + np.arange(60) + 0.5, "node": node, "tier": node.rstrip("1"), "resource": "cpu",
                "metric": "utilization_pct", "value": value.round(2),
            }))  # fmt: skip
        done.append(
            pd.DataFrame(key | {"t_s": times, "interaction": "ViewStory", "response_time_ms": took, "ok": True})
        )
    tables = {"trials": pd.DataFrame(trials), "samples": pd.concat(samples, ignore_index=True)}
    return tables | ({"interactions": pd.concat(done, ignore_index=True)} if interactions else {})


@cache
def known() -> dict[str, tuple[pd.DataFrame, str]]:
    """The good contents, and their text."""
    return {name: (frame, frame.to_csv(index=False)) for name, frame in files().items()}


def write(folder: Path, contents: Files) -> Path:
    """What is as in the good import is not made into text again, which would be half of the time of a refusal."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in contents.items():
        good, text = known().get(name, (None, ""))
        (folder / f"{name}.csv").write_text(text if frame.equals(good) else frame.to_csv(index=False))
    return folder
