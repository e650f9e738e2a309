"""What measuring costs: the same load with and without collectors, interleaved A B B A, on the nodes that are deployed.

    .venv/bin/python harness/bench/monitoring_cost.py --users 2000 --pairs 5 --run-s 30

Without: no sysstat, no status collectors, no sampler; throughput is the generator's heartbeat, CPU is that of the
nodes' control groups, read at each end of the run phase. Prints, for throughput and for the CPU of each node and of
the host per interaction, the ratio with / without as a mean of the pairs' log ratios with a 95 % t interval. Saturated
load shows lost throughput; CPU per interaction shows the cost at any load."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from ntier_harness import settings, sweep
from ntier_harness.cli import make_lab
from ntier_harness.drivers import REMOTE, jmeter
from ntier_harness.lab import Lab
from ntier_harness.load import Generator
from ntier_harness.node_state import reset
from ntier_harness.sampler import File, find_group, is_v2
from ntier_harness.spec import Spec, make_spec
from ntier_harness.targets.local import SADC
from scipy import stats

DIRECTORY = f"{REMOTE}/cost.u0"


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


def measure(lab: Lab, spec: Spec, run_s: float, folder: Path, *, collectors: bool, seed: int) -> dict[str, float]:
    """One run; {"throughput_per_s", "<node>_ms": CPU milliseconds per interaction}."""
    runner, nodes = lab.runner, lab.nodes
    reset(lab)
    nodes.runner.parallel(lambda c: nodes.call(c, f"rm -rf {DIRECTORY}"), nodes.clients)
    phases = spec.phases.__class__("cost", spec.phases.ramp_up_s, run_s, 1.0)
    run, driver = jmeter.board(lab, spec, DIRECTORY, spec.real_users(spec.users[0]), phases, seed)
    generator = Generator(nodes, lab.target.guard, run, driver, folder)
    generator.start()
    beside = start(lab, folder) if collectors else []
    lab.target.set_limits(nodes.all)
    generator.watch()
    try:
        runner.sleep(generator.release() + phases.ramp_up_s - runner.now())
        begin, cpu_begin = generator.poll(), cpu_s(lab)
        for _ in range(round(run_s)):
            runner.sleep(1.0)
            end = generator.poll()
        cpu_end = cpu_s(lab)
    finally:
        lab.target.lift_limits(nodes.all)
        for process in beside:
            process.stop()
        if collectors:
            runner.parallel(
                lambda n: nodes.call(n, f"ntier-node stop {DIRECTORY} && ntier-node drop {DIRECTORY}"), nodes.all
            )
        generator.finish(3.0)
    done = end.completed - begin.completed
    result = {f"{name}_ms": 1000 * (cpu_end[name] - cpu_begin[name]) / done for name in cpu_end}
    return {"throughput_per_s": done / (end.t_s - begin.t_s), **result}


def start(lab: Lab, folder: Path) -> list[Any]:
    """Everything a trial starts to measure."""
    program = Path(sweep.__file__).with_name("sampler.py")
    groups = [f"{n.name}={lab.target.container(n)}" for n in lab.nodes.all]
    lab.runner.parallel(lambda n: lab.nodes.call(n, f"ntier-node start {DIRECTORY}"), lab.nodes.all)
    return [
        lab.runner.spawn([sys.executable, "-I", str(program), str(folder / "samples"), *groups]),
        lab.runner.spawn([SADC, "-S", "XALL", "1", str(folder / "sysstat.sa")]),
    ]


def ratio(with_: list[float], without: list[float]) -> dict[str, float]:
    """Mean ratio of the pairs with its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(with_, without, strict=True)]
    mean, n = sum(logs) / len(logs), len(logs)
    half = (
        stats.t.ppf(0.975, n - 1) * math.sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1) / n) if n > 1 else math.inf
    )
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half), "n": n}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topo", default="1/1/1/1M")
    parser.add_argument("--users", default="2000", help="nominal")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--run-s", type=float, default=30.0)
    parser.add_argument("--out", type=Path, default=Path("build/monitoring-cost"))
    given = parser.parse_args()
    lab = make_lab()
    spec = make_spec({"topo": given.topo, "users": given.users, "phases": "5/5/1"}, lab.paths.root, os.cpu_count() or 1)
    given.out.mkdir(parents=True, exist_ok=True)
    runs: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    with sweep.locked(lab):
        sweep.provision(lab, spec, settings.values(spec))
        sweep.ready(lab, spec, settings.values(spec))
        for pair in range(given.pairs):
            for collectors in (True, False) if pair % 2 else (False, True):
                result = measure(lab, spec, given.run_s, given.out, collectors=collectors, seed=spec.seed + pair)
                runs[collectors].append(result)
                print(
                    f"pair {pair} {'with' if collectors else 'without'}: {result['throughput_per_s']:.2f}/s", flush=True
                )
        lab.nodes.disconnect()
    table = {k: ratio([r[k] for r in runs[True]], [r[k] for r in runs[False]]) for k in runs[True][0]}
    (given.out / "result.json").write_text(
        json.dumps({"spec": spec.sweep, "with": runs[True], "without": runs[False], "ratios": table}, indent=1)
    )
    for name, r in table.items():
        print(f"{name:22s} with/without {r['ratio']:.4f} [{r['low']:.4f}, {r['high']:.4f}] (n = {r['n']} pairs)")


if __name__ == "__main__":
    main()
