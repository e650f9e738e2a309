"""What polling before halting is worth: one trial at high load, in which it is on and off by turns (A B B A).

    .venv/bin/python harness/bench/halt_poll.py --topo 1/2/1/4M --users 9000 --results results/halt_poll

Prints the throughput of the turns with and without, their ratio with a 95 % interval over the pairs, and the CPU of the
host that each took. On machines without the Linux governor haltpoll there is nothing to compare."""

from __future__ import annotations

import argparse
import bisect
import csv
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from ntier_harness.targets.awake import AWAKE, HALT_POLL, Awake
from scipy import stats

TURN_S, PAIRS = 8.0, 10
SETTLE_S = 1.5  # of each turn, left out
RAMP_UP_S = 15
HALTING = {"guest_halt_poll_ns": "0", "guest_halt_poll_allow_shrink": "Y", "guest_halt_poll_grow_start": "50000"}


def put(values: dict[str, str]) -> None:
    for name, value in values.items():
        (HALT_POLL / name).write_text(value)


def host_busy_s() -> float:
    user, nice, system, _, _, irq, softirq = (int(n) for n in Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / 100


def turns() -> list[tuple[bool, float, float, float]]:
    """(polling, begin, end, busy cores of the host) of each turn, while the run phase lasts."""
    done = []
    for turn in range(2 * PAIRS):
        polling = turn % 4 in (0, 3)
        put(AWAKE if polling else HALTING)
        begin, busy = time.time(), host_busy_s()
        time.sleep(TURN_S)
        end = time.time()
        done.append((polling, begin, end, (host_busy_s() - busy) / (end - begin)))
        print(f"{'polling' if polling else 'halting'}: {done[-1][3]:.2f} cores busy", flush=True)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topo", default="1/2/1/4M")
    parser.add_argument("--users", default="9000")
    parser.add_argument("--scale", default="auto")
    parser.add_argument("--results", type=Path, default=Path("results/halt_poll"))
    given = parser.parse_args()
    if not Awake(Path("none")).possible():
        sys.exit("the governor of this machine's idle CPUs is not haltpoll, or may not be changed: nothing to compare")
    phases = f"{RAMP_UP_S}/{2 * PAIRS * TURN_S + 5:.0f}/1"
    command = [Path(sys.executable).with_name("ntier"), "sweep", "--topo", given.topo, "--users", given.users,
               "--phases", phases, "--scale", given.scale, "--attempts", "1", "--name", f"poll{time.time():.0f}",
               "--results", given.results]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sweep:
        assert sweep.stderr is not None
        for line in sweep.stderr:
            if " run  " in line:
                break
        done = turns()
        sweep.stderr.read()
    newest = max(given.results.glob("raw/*/u*/clients/client1/progress.csv"), key=lambda p: p.stat().st_mtime)
    rows = list(csv.DictReader(newest.open()))
    at, completed = [float(r["t_s"]) for r in rows], [int(r["completed"]) for r in rows]

    def rate(begin: float, end: float) -> float:
        i, j = bisect.bisect(at, begin + SETTLE_S), bisect.bisect(at, end) - 1
        return (completed[j] - completed[i]) / (at[j] - at[i])

    rates = {kind: np.array([rate(a, b) for p, a, b, _ in done if p is kind]) for kind in (True, False)}
    logs = np.log(rates[True] / rates[False])
    reach = stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs)
    low, mid, high = np.exp([logs.mean() - reach, logs.mean(), logs.mean() + reach])
    for kind, name in ((True, "polling"), (False, "halting")):
        print(f"{name}: {np.median(rates[kind]):.1f}/s (median), {rates[kind].min():.1f} to {rates[kind].max():.1f}")
    print(f"polling / halting: {mid:.3f} [{low:.3f}, {high:.3f}] (n = {len(logs)} pairs)")


if __name__ == "__main__":
    main()
