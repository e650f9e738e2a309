"""Adding a node is the experiment that proves a bottleneck: what the sweeps of a store tell of each other."""

import math
from dataclasses import replace

import pytest
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.statistics.throughput import Interval
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck
from ntier_analysis.verdict.replicas import added, with_replicas


def sweep(topology, maximum, tier="db", at_least=False):
    nodes = tuple(f"{tier}{i + 1}" for i in range(dict(Layout.of(topology).nodes)[tier]))
    named = [Bottleneck(tier, "cpu", nodes, 1.0, 0.9, 1.0)]
    interval = Interval(maximum, 0.98 * maximum, 1.02 * maximum, 0.01 * maximum, 4)
    return SweepVerdict(topology, topology, "single", "stable", named, interval, at_least)


@pytest.mark.parametrize(
    ("small", "large", "tier"),
    [
        ("1/1/1/1M", "1/1/1/2M", "db"),
        ("1/1/1/1M", "1/3/1/1M", "app"),
        ("1/1/1/1M", "1/2/1/2M", None),
        ("1/1/1/1M", "1/1/1/2P", None),
        ("1/1/1/2M", "1/1/1/1M", None),
        ("a three-tier thing", "1/1/1/2M", None),
    ],
)
def test_which_tier_has_more(small, large, tier):
    assert added(Layout.of(small, ""), Layout.of(large, "")) == tier


def evidence(*found, setting=None):
    return with_replicas(list(found), setting or {})[0].evidence


def test_a_gain_confirms_the_tier_and_contradicts_another():
    assert "1.80 [1.75, 1.85] times" in evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 180.0))[0]
    assert evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 180.0))[0].endswith("confirms the verdict")
    assert evidence(sweep("1/1/1/1M", 100.0, "app"), sweep("1/1/1/2M", 180.0))[0].endswith("contradicts the verdict")


def test_no_gain_contradicts_the_tier_and_agrees_with_another():
    assert evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 100.0))[0].endswith("contradicts the verdict")
    assert evidence(sweep("1/1/1/1M", 100.0, "app"), sweep("1/1/1/2M", 100.0))[0].endswith("agrees with the verdict")


@pytest.mark.parametrize(("imports", "turns"), [((), "in turns (REPS=3):"), (("1/1/1/1M",), "in turns:")])
def test_who_measured_elsewhere_has_no_variables_of_make(imports, turns):
    found = with_replicas([sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 100.0)], {}, imports=imports)[0]
    assert turns in found.next[0]


def test_a_lower_bound_proves_no_absence_of_a_gain():
    assert evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 100.0, at_least=True))[0].endswith("undecided")
    assert evidence(sweep("1/1/1/1M", 100.0, at_least=True), sweep("1/1/1/2M", 180.0)) == []


def test_a_maximum_without_an_interval_decides_nothing_and_says_so():
    """Trials of a database that collapsed: 16.4, 4.3 and 1.4/s."""
    collapsed = replace(sweep("1/1/1/1P", 7.35), max_throughput=Interval(7.35, math.nan, math.nan, math.nan, 3))
    (said,) = evidence(collapsed, sweep("1/1/1/2P", 25.4))
    assert said == "with more db nodes (1/1/1/2P) the maximum is 3.46 [unknown, unknown] times this one: undecided"


def test_other_mixes_are_no_witnesses():
    setting = {"1/1/1/1M": ("browse_only",), "1/1/1/2M": ("read_write",)}
    assert evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 180.0), setting=setting) == []


def test_much_less_with_more_nodes_says_nothing():
    """1/1/1/6M made 0.72 times as much as 1/1/1/1M, on a slower day: its middleware needed 1.5 times the CPU for an
    interaction."""
    for tier in ("db", "app"):
        (said,) = evidence(sweep("1/1/1/1M", 100.0, tier), sweep("1/1/1/6M", 72.0))
        assert said.endswith("all else was not equal, so it says nothing of the verdict")
    found = with_replicas([sweep("1/1/1/1M", 100.0), sweep("1/1/1/6M", 72.0)], {})[0]
    assert found.verdict == "single"
    assert evidence(sweep("1/1/1/1M", 100.0), sweep("1/1/1/2M", 90.0))[0].endswith("contradicts the verdict")
