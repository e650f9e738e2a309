"""What holds users up without saturating anything is named, most of it first; what the load explains is not."""

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.verdict.suspects import MATTERS, suspects

SECONDS = 40
MACHINES = pd.DataFrame(
    {"node": ["web1", "app1", "db1"], "tier": ["web", "app", "db"], "cpu_cores": [8.0, 8.0, 8.0]},
)
NOTHING = np.zeros(SECONDS)


def frame(**series) -> pd.DataFrame:
    """`node__resource__metric__item=values or mean`, one a second."""
    parts = []
    for name, values in series.items():
        node, resource, metric, *item = name.split("__")
        values = np.broadcast_to(np.asarray(values, float), SECONDS)
        tier = node.rstrip("0123456789")
        parts.append(
            pd.DataFrame(
                {
                    "t_s": np.arange(SECONDS) + 1.0,
                    "node": node,
                    "tier": tier,
                    "resource": resource,
                    "metric": metric,
                    "item": item[0] if item else "",
                    "value": values,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def healthy(load: float = 1.0, **further) -> dict:
    """A system at `load` times its lowest load: all that works grows with it, nothing is waited for."""
    return {
        "web1__query__requests_per_s": 20 * load,
        "web1__pool__active__workers": 2 * load,
        "app1__cpu__utilization_pct": 4 * load,
        "app1__jvm__gc_pct": 0.2 * load,
        "app1__jvm__gc_per_s": 0.1 * load,
        "app1__jvm__jit_pct": 0.5,
        "db1__lock__innodb_row_lock_time_per_s": 2.0 * load,
        "db1__network__tcp_retransmits_per_s": 0.01 * load,
        "db1__network__tcp_listen_drops_per_s": 0.0,
        "db1__queue__runnable": 0.3 * load,
        "db1__cpu__utilization_pct": 3 * load,
        "db1__cpu__core_max_pct": min(8.0 * load, 80.0),
        "db1__pool__connections": 30.0,
        "db1__pool__max_connections": 500.0,
        "db1__memory__swap_in_per_s": 0.0,
        "db1__disk__wait_ms__vda": 1.0,
        "db1__disk__queue__vda": 0.02 * load,
        "db1__disk__operations_per_s__vda": 20 * load,
    } | further


LOW = frame(**healthy())


def test_a_healthy_system_has_no_suspects_at_any_load():
    for load in (1, 3, 10):
        assert suspects(frame(**healthy(load)), LOW, MACHINES) == []
    assert suspects(frame(**healthy(10)), None, MACHINES) == []


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        ({"app1__jvm__gc_pct": 34.0, "app1__jvm__gc_per_s": 10.0}, "garbage collection",
         "app1 spends 34 % of the run in garbage collection (0 % at the lowest load)"),
        ({"app1__jvm__gc_pct": 4.0, "app1__jvm__gc_per_s": 0.1}, "garbage collection pause", "stops app1 for 400 ms"),
        ({"app1__jvm__jit_pct": 80.0}, "compilation", "in 80.0 % of the run, with up to 10 % of its CPU"),
        ({"db1__lock__innodb_row_lock_time_per_s": 9000.0}, "lock waits", "9.0 statements wait for row locks on db1"),
        ({"db1__lock__lock_waiting": 6.0}, "lock waits", "6.0 statements wait for locks on db1"),
        ({"db1__queue__threads_running": np.arange(SECONDS) % 2 * 20.0 + 1.0}, "statements that wait",
         "10.0 statements are under way on db1 on average while its CPU and disks are used less than half"),
        ({"db1__network__tcp_retransmits_per_s": 20.0}, "retransmits", "db1 sends 20.0 TCP segments per second again"),
        ({"db1__network__tcp_listen_drops_per_s": 0.1}, "connections turned away", "its accept queue was full"),
        ({"db1__query__connection_errors_max_connections_per_s": 0.1}, "connections turned away", "max_connections"),
        ({"db1__pool__connections": 498.0}, "connection limit", "498 of its 500 connections"),
        ({"db1__queue__runnable": 20.0}, "run queue", "20.0 runnable tasks for 8 cores"),
        ({"db1__cpu__core_max_pct": 100.0, "db1__cpu__utilization_pct": 15.0}, "single core",
         "one core of db1 is full in 100 % of the run (0 % at the lowest load), while its 8 cores are used 15 %"),
        ({"db1__memory__swap_in_per_s": 5.0}, "swapping", "db1 swaps 5.0 pages per second in"),
        ({"db1__disk__wait_ms__vda": 80.0, "db1__disk__queue__vda": 16.0}, "disk queue", "80.0 ms per operation (1.0"),
        ({"db1__disk__pressure_pct": 40.0}, "disk pressure", "wait for its disks in 40 % of the run"),
    ],
)  # fmt: skip
def test_each_fault_is_named_and_nothing_else(fault, kind, says):
    found = suspects(frame(**healthy(3, **fault)), LOW, MACHINES)
    assert [s.kind for s in found] == [kind]
    assert says in found[0].text
    assert found[0].value > found[0].limit
    assert found[0].node in found[0].text


def test_what_grows_faster_than_the_load_is_suspect_below_its_limit():
    """7 % of collections are within the collector's own goal, but ten times the load explains 2 %."""
    shares = {"app1__jvm__gc_pct": 7.0, "app1__jvm__gc_per_s": 2.0}
    (found,) = suspects(frame(**healthy(10, **shares)), LOW, MACHINES)
    assert found.kind == "garbage collection"
    assert np.isnan(found.limit)
    assert found.explains >= MATTERS
    assert suspects(frame(**healthy(10, **shares)), None, MACHINES) == []
    assert suspects(frame(**healthy(20, **shares)), LOW, MACHINES) == []


def test_the_one_that_could_explain_most_comes_first():
    faults = {"app1__jvm__gc_pct": 20.0, "app1__jvm__gc_per_s": 10.0, "db1__lock__innodb_row_lock_time_per_s": 5000.0}
    run = healthy(3, **faults)
    assert [s.kind for s in suspects(frame(**run), LOW, MACHINES)] == ["lock waits", "garbage collection"]
    run["db1__lock__innodb_row_lock_time_per_s"] = 600.0  # a tenth of the six requests in service
    assert [s.kind for s in suspects(frame(**run), LOW, MACHINES)] == ["garbage collection", "lock waits"]


def test_a_disk_with_room_for_many_is_no_suspect_while_each_operation_is_as_fast():
    many = {"db1__disk__queue__vda": 31.0, "db1__disk__operations_per_s__vda": 31_000.0, "db1__disk__wait_ms__vda": 1.0}
    assert suspects(frame(**healthy(3, **many)), LOW, MACHINES) == []


def test_in_a_container_the_hosts_queue_disk_and_swap_are_not_the_nodes():
    hosts = {
        "db1__cpu__throttled_pct": 50.0,
        "db1__queue__runnable": 50.0,
        "db1__memory__swap_in_per_s": 9.0,
        "db1__disk__wait_ms__vda": 80.0,
        "db1__disk__queue__vda": 16.0,
    }
    assert suspects(frame(**healthy(3, **hosts)), LOW, MACHINES) == []


def test_one_core_tells_nothing_of_a_node_that_has_one_or_is_full_itself():
    full = {"db1__cpu__core_max_pct": 100.0}
    one = MACHINES.assign(cpu_cores=1.0)
    assert suspects(frame(**healthy(3, **full)), LOW, one) == []
    for pct in (60.0, 98.0):
        assert suspects(frame(**healthy(3, **full, db1__cpu__utilization_pct=pct)), LOW, MACHINES) == []


def test_cores_that_are_full_by_turns_within_a_second_are_no_single_thread():
    run = healthy(3)
    turns = frame(**run | {"db1__cpu__core_max_pct": np.tile([100.0, 40.0], SECONDS // 2)})
    turns["t_s"] = turns["t_s"].where(turns["metric"] != "core_max_pct", turns["t_s"] / 10)
    assert suspects(turns, LOW, MACHINES) == []


def test_cores_are_told_by_use_where_none_are_on_record():
    use = {"db1__cpu__core_max_pct": 100.0, "db1__cpu__utilization_pct": 10.0, "db1__cpu__used_cores": 1.6}
    (found,) = suspects(frame(**healthy(1, **use)), None, MACHINES.assign(cpu_cores=np.nan))
    assert "its 16 cores are used 10 %" in found.text


def test_limit_of_connections_may_be_told_beside_the_samples():
    run = {k: v for k, v in healthy(3, db1__pool__connections=97.0).items() if "max_connections" not in k}
    assert suspects(frame(**run), LOW, MACHINES) == []
    (found,) = suspects(frame(**run), LOW, MACHINES, max_connections=100)
    assert found.kind == "connection limit"


def test_gaps_and_missing_columns_are_no_suspects():
    run = frame(**healthy(3))
    run.loc[run["metric"] == "gc_pct", "value"] = np.nan
    assert suspects(run, LOW, MACHINES) == []
    assert suspects(run.iloc[:0], LOW, MACHINES) == []
    assert suspects(run.astype({"item": "category", "node": "category"}), None, MACHINES.iloc[:0]) == []


@pytest.mark.parametrize("busy", [{"db1__cpu__utilization_pct": 90.0}, {"db1__disk__utilization_pct__vda": 90.0}])
def test_statements_on_hardware_that_is_busy_are_no_suspects(busy):
    """They wait for what is full, which the verdict sees; and two daemons that always run wait for nothing."""
    run = {"db1__queue__threads_running": np.arange(SECONDS) % 2 * 20.0 + 1.0} | busy
    assert suspects(frame(**healthy(3, **run)), LOW, MACHINES) == []
    assert suspects(frame(**healthy(3, db1__queue__threads_running=3.0)), LOW, MACHINES) == []
