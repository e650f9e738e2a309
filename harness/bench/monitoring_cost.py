"""What measuring costs: the same loads with the profiles of measuring in turns, on nodes of target local.

    .venv/bin/python harness/bench/monitoring_cost.py --users 2000,6000 --rounds 6 [--run-s 30] [--trace 100]
        [--topo 1/1/1/1M] [--profiles none,standard,detailed] [--out build/monitoring-cost]

none       no collectors: throughput is the generator's heartbeat, CPU is that of the nodes' control groups, read at
           each end of the run phase
standard   all that a trial starts: sysstat and status collectors on each node, sampler and sysstat on the host
detailed   that, and tracing (TRACE=100): ids in the web log, spans of the application, statements in the database logs

Name a load below and one beyond the knee: what costs CPU shows at any load as CPU per interaction, and as throughput
only where something is full. Rounds go through the profiles there and back (ABC, CBA), so that a machine that becomes
slower hits all alike. Tracing is another deployment: each round has one change of it, with restarts and a warm-up.
Give it the machine for itself; 6 rounds of two loads take about 45 minutes.

Prints, for each load and pair of profiles, the ratio of throughput, of the mean response time, and of the CPU time per
interaction of each node and of the host: the mean of the rounds' log ratios with a 95 % t interval. result.json has the
runs; it is written anew after each round."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ntier_harness import settings, sweep
from ntier_harness.catalog import Phases
from ntier_harness.commands.begin import make_lab
from ntier_harness.drivers import REMOTE, of_system
from ntier_harness.lab import Lab
from ntier_harness.load import Generator
from ntier_harness.node_state import reset
from ntier_harness.request import make_spec
from ntier_harness.sampler import File, find_group, is_v2
from ntier_harness.spec import Spec
from scipy import stats

DIRECTORY = f"{REMOTE}/cost.u0"
PROFILES = ("none", "standard", "detailed")
RAMP_S = (5.0, 1.0)


def cpu_s(lab: Lab) -> dict[str, float]:
    """CPU seconds used so far by each node and by the whole host."""
    used = {}
    for node in lab.nodes.all:
        group = find_group("cpuacct", lab.target.container(node))
        if is_v2():
            used[node.name] = int(File(f"{group}/cpu.stat").table()["usage_usec"]) / 1e6
        else:
            used[node.name] = int(File(f"{group}/cpuacct.usage").number()) / 1e9
    ticks = [int(n) for n in File("/proc/stat").text().splitlines()[0].split()[1:9]]
    used["host"] = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return used


@contextmanager
def measuring(lab: Lab, folder: Path, profile: str) -> Iterator[None]:
    """All that a trial starts to measure."""
    if profile == "none":
        yield
        return
    nodes = lab.nodes
    lab.runner.parallel(lambda n: nodes.call(n, f"ntier-node start {DIRECTORY}"), nodes.all)
    observation = lab.target.observe(folder, DIRECTORY, nodes)
    try:
        yield
    finally:
        observation.stop()
        ended = f"ntier-node stop {DIRECTORY} && ntier-node drop {DIRECTORY}"
        lab.runner.parallel(lambda n: nodes.call(n, ended, timeout=60), nodes.all)


def measure(lab: Lab, spec: Spec, users: int, run_s: float, folder: Path, profile: str, seed: int) -> dict[str, float]:
    """One run; {"throughput_per_s", "response_ms", "<node>_ms": CPU milliseconds per interaction}."""
    runner, nodes = lab.runner, lab.nodes
    reset(lab)
    runner.parallel(lambda c: nodes.call(c, f"rm -rf {DIRECTORY}"), nodes.clients)
    phases = Phases("cost", RAMP_S[0], run_s, RAMP_S[1])
    run, driver = of_system.run_and_driver(lab, spec, DIRECTORY, spec.real_users(users), phases, seed)
    generator = Generator(nodes, lab.target.guard, run, driver, folder)
    generator.start()
    waited, counted = 0.0, 0
    with measuring(lab, folder, profile):
        try:
            lab.target.set_limits(nodes.all)
            generator.watch()
            runner.sleep(max(0.0, generator.release() + phases.ramp_up_s - runner.now()))
            begin, cpu_begin = generator.poll(), cpu_s(lab)
            last = end = begin
            for _ in range(round(run_s)):
                runner.sleep(1.0)
                end = generator.poll()
                if not math.isnan(end.response_time_ms):
                    waited += end.response_time_ms * (end.completed - last.completed)
                    counted += end.completed - last.completed
                last = end
            cpu_end = cpu_s(lab)
            generator.wait(10.0)
        finally:
            lab.target.lift_limits(nodes.all)
            generator.end()
    done = end.completed - begin.completed
    cpu = {f"{name}_ms": 1000 * (cpu_end[name] - cpu_begin[name]) / done for name in cpu_end}
    return {"throughput_per_s": done / (end.t_s - begin.t_s), "response_ms": waited / max(1, counted), **cpu}


def ratio(with_: list[float], without: list[float]) -> dict[str, float]:
    """Mean ratio of the pairs with its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(with_, without, strict=True)]
    mean, n = sum(logs) / len(logs), len(logs)
    half = math.inf
    if n > 1:
        half = stats.t.ppf(0.975, n - 1) * math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1) / n)
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(min(700.0, mean + half)), "n": n}


def deployed(lab: Lab, spec: Spec) -> None:
    sweep.provision(lab, spec, settings.values(spec))
    sweep.ready(lab, spec, settings.values(spec))


def table(runs: list[dict[str, Any]], profiles: list[str]) -> dict[str, Any]:
    """load -> "detailed/standard" -> quantity -> ratio, of the rounds that have both."""
    found: dict[str, Any] = {}
    for users in sorted({r["users"] for r in runs}):
        by = {p: {r["round"]: r for r in runs if r["users"] == users and r["profile"] == p} for p in profiles}
        for without, with_ in itertools.combinations(profiles, 2):
            rounds = sorted(by[without].keys() & by[with_].keys())
            if rounds:
                pairs = [(by[with_][n], by[without][n]) for n in rounds]
                names = [k for k in pairs[0][0] if k.endswith(("_ms", "_per_s"))]
                found.setdefault(str(users), {})[f"{with_}/{without}"] = {
                    k: ratio([a[k] for a, _ in pairs], [b[k] for _, b in pairs]) for k in names
                }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topo", default="1/1/1/1M")
    parser.add_argument("--users", default="2000,6000", help="nominal loads, below and beyond the knee")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--run-s", type=float, default=30.0)
    parser.add_argument("--trace", default="100", help="of profile detailed: one interaction of so many")
    parser.add_argument("--profiles", default=",".join(PROFILES))
    parser.add_argument("--out", type=Path, default=Path("build/monitoring-cost"))
    given = parser.parse_args()
    profiles = given.profiles.split(",")
    if not set(profiles) <= set(PROFILES):
        parser.error(f"--profiles {given.profiles}: allowed are {', '.join(PROFILES)}")
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: must be 1 or more")
    lab = make_lab()
    wanted = {"topo": given.topo, "users": given.users, "phases": f"{RAMP_S[0]:g}/{given.run_s:g}/{RAMP_S[1]:g}"}
    specs = {p: make_spec(wanted | ({"trace": given.trace} if p == "detailed" else {}), lab.paths.root,
                          os.cpu_count() or 1) for p in profiles}  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, Any]] = []
    with sweep.locked(lab):
        for number in range(given.rounds):
            for profile in profiles if number % 2 == 0 else profiles[::-1]:
                spec = specs[profile]
                deployed(lab, spec)
                for users in spec.users:
                    done = measure(lab, spec, users, given.run_s, given.out.absolute(), profile, spec.seed + number)
                    runs.append({"round": number, "profile": profile, "users": users, **done})
                    print(f"round {number} {profile:8s} {users:6d} users: {done['throughput_per_s']:8.2f}/s, "
                          f"{done['response_ms']:8.1f} ms", flush=True)  # fmt: skip
            result = {"topology": given.topo, "trace": given.trace, "runs": runs, "ratios": table(runs, profiles)}
            (given.out / "result.json").write_text(json.dumps(result, indent=1))
        lab.nodes.disconnect()
    for users, pairs in table(runs, profiles).items():
        for pair, quantities in pairs.items():
            for name, r in quantities.items():
                print(f"{users:>6} users  {pair:18s} {name:18s} {r['ratio']:.4f} [{r['low']:.4f}, {r['high']:.4f}] "
                      f"(n = {r['n']})")  # fmt: skip


if __name__ == "__main__":
    main()
