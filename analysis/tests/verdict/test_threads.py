"""A full thread of a node with several cores limits, although the node has room: a data node of MySQL Cluster."""

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.report.words import verdict_sentence
from ntier_analysis.store.tables import read_table, write_table
from ntier_analysis.verdict.tables import as_json, sweep_verdict
from synthetic import Truth, stored_sweep

pytestmark = pytest.mark.whole

DEMAND_S = {"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01}
LOADS = [200, 400, 800, 1000, 1200]


@pytest.fixture(scope="module")
def tables(simulated):
    """A sweep that db1 limits, which is full from 700 users on."""
    made = stored_sweep(Truth(DEMAND_S), LOADS)
    (sweep,) = (made / "raw").iterdir()
    return [read_table(made / "store", name, sweep.name) for name in ("trials", "samples", "nodes", "interactions")]


def judged(tables, cores: float, cpu_share: float):
    """With what db1's CPU did as the work of its thread ldm2, a reading per second, and `cpu_share` of it as the use of
    the node, which has `cores`."""
    trials, samples, nodes, interactions = tables
    used = (samples["node"] == "db1") & (samples["resource"] == "cpu") & (samples["metric"] == "utilization_pct")
    cpu = samples[used]
    grouped = cpu.groupby(["trial", np.ceil(cpu["t_s"])])
    thread = grouped.last().assign(value=grouped["value"].mean().clip(upper=100)).drop(columns="t_s").reset_index()
    thread = thread.assign(resource="thread", item="ldm2", source="ndb_threads")
    other = thread.assign(item="recv1", value=thread["value"] / 3)
    quota = (samples["node"] == "db1") & (samples["metric"] == "throttled_pct")
    lower = samples.assign(value=samples["value"].where(~used, samples["value"] * cpu_share))
    if cpu_share < 1:
        lower.loc[quota, "value"] = 0.0
    sized = nodes.assign(cpu_cores=nodes["cpu_cores"].where(nodes["node"] != "db1", cores))
    everything = pd.concat([lower, thread[samples.columns], other[samples.columns]], ignore_index=True)
    return sweep_verdict(str(trials["sweep"].iloc[0]), trials, everything, sized, interactions).verdict


def test_the_store_takes_threads(tables, tmp_path):
    sweep, samples = str(tables[0]["sweep"].iloc[0]), tables[1]
    thread = samples[samples["metric"] == "utilization_pct"].assign(resource="thread", item="ldm2")
    write_table(tmp_path, "samples", sweep, thread)
    assert set(read_table(tmp_path, "samples", sweep)["item"]) == {"ldm2"}


def named(verdict):
    return [(b.tier, b.resource, b.item) for b in verdict.bottlenecks]


def test_a_full_thread_is_the_bottleneck_of_a_node_that_has_room(tables):
    found = judged(tables, cores=4.0, cpu_share=0.4)
    assert (found.verdict, named(found)) == ("single", [("db", "thread", "ldm2")])
    assert [v.verdict for _, v in found.trials] == ["none", "none", "single", "single", "single"]
    assert verdict_sentence(as_json(found), 1.0).startswith("db thread ldm2 on db1 limits 1/1/1/1M at ")
    assert any(text.startswith("db thread ldm2 (db1): saturated in ") for text in found.evidence)


def test_without_the_thread_nothing_would_be_named(tables):
    """The same use of the node, on a core or less: a thread that reads full there was read wrong."""
    found = judged(tables, cores=1.0, cpu_share=0.4)
    assert named(found) == []


def test_the_cpu_is_named_where_the_node_has_one_core(tables):
    found = judged(tables, cores=1.0, cpu_share=1.0)
    assert (found.verdict, named(found)) == ("single", [("db", "cpu", "")])
