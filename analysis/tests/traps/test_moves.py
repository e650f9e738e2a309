"""Bottlenecks that move within a trial, and the study's long reads that turn the balancer (its section 4)."""

import numpy as np
import pandas as pd
import pytest
from detector import network as net
from detector import observe
from detector.kernel import CELL_S
from detector.network import TIERS, Network, Run, Station, simulate
from detector.plan import Case, View, turns
from networks import plan
from ntier_analysis.statistics.chains import Link, Step, chain, linked, links, pairs, tree
from ntier_analysis.verdict.moves import long_chains, looked_at, moves
from ntier_analysis.verdict.saturation import saturations

pytestmark = pytest.mark.whole

DB, APP = ("db", "cpu"), ("app", "cpu")
RUN_S = 180.0


def long_reads(share: float, policy: str) -> Network:
    """Four databases with room, a middleware at its limit; a `share` of the requests reads a whole table from one disk
    for 4 s (on average) and all others touch the disk for a moment."""
    nodes = {"web": 1, "app": 1, "middleware": 1, "db": 4}
    cpus = [Station(t, f"{t}{i + 1}", "cpu", width=2.0, quota=0.2) for t in TIERS for i in range(nodes[t])]
    disks = [Station("db", f"db{i + 1}", "disk") for i in range(nodes["db"])]

    def enter(tier):
        return net.Step("choose", tier)

    def leave(tier):
        return net.Step("leave", tier)

    def serve(tier, seconds, resource="cpu", long=None):
        return net.Step("serve", (tier, resource), (seconds, seconds if long is None else long), 1.0)

    steps = (
        enter("web"), serve("web", 0.001), leave("web"), enter("app"), serve("app", 0.002), leave("app"),
        enter("middleware"), serve("middleware", 0.2 / 40), enter("db"), serve("db", 0.004),
        serve("db", 0.002, "disk", long=4.0), serve("db", 0.004), leave("db"), leave("middleware"),
    )  # fmt: skip
    policies = {"db": (policy, ())}
    return Network(nodes, (*cpus, *disks), (), steps, policies, shares=(1 - share, share))


def samples_of(run: Run) -> pd.DataFrame:
    """What collectors see of the databases, once a second."""
    at = np.arange(run.ramp_s, run.end_s + 0.5)
    cells = (at / CELL_S).astype(int)
    parts = []
    for i in range(4):
        cpu, disk = _row(run, f"db{i + 1}", "cpu"), _row(run, f"db{i + 1}", "disk")
        jobs = run.record.jobs[cpu] + run.record.jobs[disk]
        series = {
            ("cpu", "utilization_pct"): 100 * _rate(run.record.used[cpu], cells) / 0.2,
            ("disk", "utilization_pct"): 100 * _rate(run.record.busy[disk], cells),
            ("query", "questions_per_s"): _rate(run.record.done[cpu], cells),
            ("queue", "threads_running"): jobs[cells[1:] - 1].astype(float),
        }
        parts += [
            pd.DataFrame(
                {"t_s": at[1:] - 0.5, "node": f"db{i + 1}", "resource": r, "metric": m, "value": v, "item": ""}
            )
            for (r, m), v in series.items()
        ]
    return pd.concat(parts, ignore_index=True)


def _row(run: Run, node: str, resource: str) -> int:
    return next(i for i, s in enumerate(run.network.stations) if (s.node, s.resource) == (node, resource))


def _rate(record: np.ndarray, cells: np.ndarray) -> np.ndarray:
    return np.diff(np.concatenate([[0.0], np.cumsum(record, dtype=float)])[cells])


def test_the_chain_of_long_reads_is_found_without_being_told():
    """disk up, queue up, statements down, CPU down, on databases whose CPU has room."""
    run = simulate(long_reads(0.006, "least_pending"), 330, 20.0, RUN_S, 3)
    chains = long_chains(looked_at(samples_of(run), [f"db{i + 1}" for i in range(4)], run.ramp_s, run.end_s))
    assert len(chains) >= 2
    for one in chains:
        assert one.turned_away, one.text
        assert {s.name: s.sign for s in one.steps}.get("queue", 1) == 1, one.text
    assert any("queue" in {s.name for s in one.steps} for one in chains)


def test_where_there_is_one_database_no_balancer_turned_away():
    """The same signs, but nowhere to turn to."""
    run = simulate(long_reads(0.006, "least_pending"), 330, 20.0, RUN_S, 3)
    alone = [long_chains(looked_at(samples_of(run), [f"db{i + 1}"], run.ramp_s, run.end_s)) for i in range(4)]
    assert sum(len(chains) for chains in alone) >= 2
    assert not any(one.turned_away for chains in alone for one in chains)


def test_a_balancer_that_does_not_look_is_not_turned():
    run = simulate(long_reads(0.006, "round_robin"), 330, 20.0, RUN_S, 3)
    chains = long_chains(looked_at(samples_of(run), [f"db{i + 1}" for i in range(4)], run.ramp_s, run.end_s))
    assert not any(one.turned_away for one in chains), [one.text for one in chains]


def test_saturation_that_moves_between_nodes_within_a_trial_is_counted():
    made = plan({DB: 0.4, APP: 0.4}, workers=4, latency_s=0.002)
    for key, times in zip((APP, DB), turns(made, 5.0, (0.5, 0.5), True), strict=True):
        made.options[key] = {"competitor": 0.9, "switches": times}
    run = simulate(made.build(), 110, 20.0, RUN_S, 2)
    rows = observe.sample_rows(_case(run), 0, run, _case(run).view, 2).assign(source="import")
    begin = observe.start(0)
    moved = moves(saturations(rows, begin + run.ramp_s, begin + run.end_s))
    counted = {(m.first, m.second): m.times for m in moved}
    assert counted["app1 cpu", "db1 cpu"] == pytest.approx(RUN_S / 10, abs=3)
    assert counted["db1 cpu", "app1 cpu"] == pytest.approx(RUN_S / 10, abs=3)
    steady = simulate(plan({DB: 1.0}).build(), 250, 20.0, 60.0, 2)
    rows = observe.sample_rows(_case(steady), 0, steady, _case(steady).view, 2).assign(source="import")
    assert moves(saturations(rows, begin + 20, begin + 80)) == []


def _case(run: Run) -> Case:
    return Case("moves", "", "", run.network, {}, set(), (), 60.0, 0.1, View(), 2, 20.0)


def test_the_tree_keeps_the_direct_links_only():
    rng = np.random.default_rng(1)
    disk = rng.normal(size=400)
    queue = disk + 0.5 * rng.normal(size=400)
    statements = -queue + 0.5 * rng.normal(size=400)
    cpu = statements + 0.2 * rng.normal(size=400)
    network = links({"disk": disk, "queue": queue, "statements": statements, "cpu": cpu, "flat": np.ones(400)}, 1.0)
    assert len(network) == 6
    assert len(tree(network)) == 3
    assert [(s.name, s.sign) for s in chain(network, "disk")] == [("queue", 1), ("statements", -1), ("cpu", -1)]
    assert chain(network, "flat") == []


@pytest.mark.parametrize("alike", [0.0, 0.5, 0.8])
def test_unrelated_series_of_nine_databases_have_no_links(alike):
    """A run of 40 s. Counted by shifts in time, of which there are 35, one of nine databases had a false link in more
    than half of the runs."""
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(100):
        noise = rng.normal(size=(9, 4, 100))
        for t in range(1, 100):
            noise[..., t] += alike * noise[..., t - 1]
        nodes = [dict(zip(("disk", "queue", "statements", "cpu"), n[:, 60:], strict=True)) for n in noise]
        false += any(linked([pairs(node, 1.0) for node in nodes]))
    assert false <= 15  # 5 of 100, and what chance and the short run add


def test_chain_has_branches():
    network = [Link("a", "b", 0.9, 0.0), Link("b", "c", -0.8, 0.0), Link("a", "d", 0.5, 0.0), Link("a", "c", -0.4, 0.0)]
    assert chain(network, "a") == [Step("a", "b", 0.9, 1), Step("b", "c", -0.8, -1), Step("a", "d", 0.5, 1)]
