"""What the sweep with one more node says of a verdict: which gain was to be expected, and which refutes."""

from dataclasses import replace

import pytest
from ntier_analysis.contracts.layout import Layout
from ntier_analysis.contracts.system import Replicas
from ntier_analysis.statistics.values import Interval
from ntier_analysis.verdict.data import SweepVerdict
from ntier_analysis.verdict.load import Bottleneck
from ntier_analysis.verdict.replicas import added, with_replicas

from . import test_replicas, test_second_reading


def verdict_of(topology, maximum, *some, kind="stable"):
    at = Interval(maximum, 0.98 * maximum, 1.02 * maximum, 0.01 * maximum, 4)
    return SweepVerdict(topology, topology, "multi" if len(some) > 1 else "single", kind, list(some), at, False)


def limit(tier, resource="cpu", node=None, item=""):
    return Bottleneck(tier, resource, (node or f"{tier}1",), 1.0, 0.9, 1.0, item)


def test_a_node_that_was_taken_away_says_nothing():
    both = [test_replicas.sweep(t, x) for t, x in (("1/1/1/1M", 100.0), ("1/1/1/2M", 180.0))]
    assert with_replicas(both, {})[1].evidence == []


@pytest.mark.parametrize("verdict", ["hidden", "unknown"])
def test_a_gain_refutes_no_verdict_that_names_nothing(verdict):
    small = replace(test_replicas.sweep("1/1/1/1M", 100.0), verdict=verdict, kind="", bottlenecks=[])
    heard = with_replicas([small, test_replicas.sweep("1/1/1/2M", 180.0)], {})[0]
    assert heard.verdict == verdict
    assert heard.evidence[-1].endswith("does not fit the verdict")


def test_a_gain_of_what_days_differ_by_does_not_refute():
    """1.10 [1.07, 1.13]."""
    small = test_replicas.sweep("1/1/1/1M", 100.0, "app")
    heard = with_replicas([small, test_replicas.sweep("1/1/1/2M", 110.0)], {})[0]
    assert (heard.verdict, heard.evidence[-1].endswith("does not fit the verdict")) == ("single", True)


def test_an_added_node_that_limits_alone_has_taken_the_work_and_its_gain_was_to_be_expected():
    one = test_second_reading.of("1/1/1/1M", 100.0, "db1")
    assert test_second_reading.witnessed(one, test_second_reading.of("1/1/1/2M", 101.0, "db2")).verdict == "unknown"


def test_a_sweep_without_a_maximum_says_nothing():
    none = replace(test_replicas.sweep("1/1/1/1M", 100.0), max_throughput=None)
    two = test_replicas.sweep("1/1/1/2M", 180.0)
    for pair in ([none, two], [test_replicas.sweep("1/1/1/1M", 100.0), replace(two, max_throughput=None)]):
        assert all(v.evidence == [] for v in with_replicas(pair, {}))


def test_tiers_of_any_name_have_witnesses_and_other_tiers_are_another_system():
    small, large = test_second_reading.of("1/1", 100.0, "db1"), test_second_reading.of("1/2", 180.0, "db1", "db2")
    layouts = {v.sweep: Layout.of(v.topology, "front,db") for v in (small, large)}
    assert with_replicas([small, large], {}, layouts)[0].evidence[-1].endswith("confirms the verdict")
    assert added(Layout.of("1/1", "front,db"), Layout.of("1/1/2", "front,cache,db")) is None


def test_a_replica_brings_the_middleware_a_pool_more():
    """Connections to db1 limit; those to db2 come with it."""
    small = verdict_of("1/1/1/1M", 100.0, limit("middleware", "pool", item="db1"))
    heard = with_replicas([small, verdict_of("1/1/1/2M", 180.0, limit("app"))], {})[0]
    assert heard.verdict == "single"
    assert heard.evidence[0].endswith("confirms the verdict")
    none = with_replicas([small, verdict_of("1/1/1/2M", 100.0, limit("app"))], {})[0]
    assert (none.verdict, none.evidence[0].endswith("does not fit the verdict")) == ("single", True)


@pytest.mark.parametrize(("second", "kind", "verdict"), [(limit("db", "disk"), "simultaneous", "unknown"),
                                                         (limit("app"), "alternating", "unknown"),
                                                         (limit("app"), "simultaneous", "multi")])  # fmt: skip
def test_no_gain_refutes_all_that_says_there_would_be_one(second, kind, verdict):
    """Two of one tier, or two in turns, of which more of either alone brings 8 % or more."""
    small = verdict_of("1/1/1/1M", 100.0, limit("db"), second, kind=kind)
    heard = with_replicas([small, verdict_of("1/1/1/2M", 100.0, limit("app"))], {})[0]
    assert heard.verdict == verdict
    assert heard.evidence[0].endswith("agrees with the verdict") == (verdict == "multi")


def test_each_of_several_that_are_named_may_be_why_no_gain_was_to_be_expected():
    """All nodes do all writes: their disks are full again."""
    small = verdict_of("1/1/1/1M", 100.0, limit("db"), limit("db", "disk"), kind="simultaneous")
    disks = replace(limit("db", "disk"), nodes=("db1", "db2"))
    kinds = {"1/1/1/1M": {"db": Replicas.ALL_WRITE}}
    assert with_replicas([small, verdict_of("1/1/1/2M", 100.0, disks)], {}, None, kinds)[0].verdict == "multi"
