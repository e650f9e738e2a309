"""MySQL Cluster, without its programs: what a request becomes, what is refused, how its data are kept and put back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ntier_harness import ledger, node_state, sweep
from ntier_harness.cli import main
from ntier_harness.connections import services
from ntier_harness.deploy import of_tiers
from ntier_harness.drivers.of_system import of_data
from ntier_harness.errors import RequestError
from ntier_harness.plan import order
from ntier_harness.plan_view import plan_data, plan_text
from ntier_harness.request import make_spec
from ntier_harness.settings import values
from ntier_harness.ssh import Nodes
from ntier_harness.systems import find
from ntier_harness.targets.hosts import expected
from ntier_harness.targets.terraform import common_variables
from ntier_harness.trial import described

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


def request(topo="1/2/4/2C", **options):
    return make_spec({"topo": topo, "phases": "smoke", "users": "1000"} | options, ROOT, cores=2)


# ---- what a request becomes ------------------------------------------------------------------------------------------


def test_the_notation_counts_sql_nodes_and_data_nodes_and_not_the_management_node():
    spec = request()
    assert spec.topology.counts == {"web": 1, "app": 2, "middleware": 4, "db": 2, "management": 1}
    assert spec.topology.beside == ("management",)
    assert spec.sweep == "1-2-4-2C.browse_only.ndbsql.smoke"
    assert {tier: spec.role(tier) for tier in spec.topology.counts} == {
        "web": "web", "app": "app", "middleware": "ndbsql", "db": "ndbmtd", "management": "ndbmgmd"
    }  # fmt: skip


def test_terraform_makes_eleven_nodes_with_the_memory_that_they_need():
    tiers = {t["name"]: t for t in common_variables(request())["tiers"]}
    assert {name: t["count"] for name, t in tiers.items()} == {
        "web": 1, "app": 2, "middleware": 4, "db": 2, "management": 1, "client": 1
    }  # fmt: skip
    assert [t["image"] for t in tiers.values()] == ["web", "app", "ndbsql", "ndbmtd", "ndbmgmd", "client"]
    assert tiers["db"]["memory_floor_bytes"] == 1024 * MIB
    assert tiers["management"]["memory_floor_bytes"] == 256 * MIB


def test_other_topologies_have_no_management_node_and_no_cluster():
    spec = request("1/1/1/2M")
    assert "management" not in spec.topology.counts
    assert spec.topology.beside == ()
    assert not [name for name in values(spec) if "replicas" in name or "sql" in name or "pushed" in name]
    assert spec.tier("db") == spec.system.definition.tier("db")
    names, ports, _ = vars(expected(spec, "db")).values()
    assert not {"ndbmtd", "ndb_mgmd"} & set(names)
    assert not {1186, 2202} & set(ports)


def test_the_packet_filter_opens_what_the_cluster_needs_and_no_more():
    opened = {
        (service["from"], tier, service["port"]) for tier, asked in services(request()).items() for service in asked
    }
    assert opened == {
        ("client", "web", 80), ("web", "app", 8080), ("app", "middleware", 3306),
        ("middleware", "db", 2202), ("db", "db", 2202), ("management", "db", 2202),
        ("middleware", "management", 1186), ("db", "management", 1186),
        ("db", "middleware", 3306),
    }  # fmt: skip


def test_the_manifest_says_what_serves_requests_and_how_data_nodes_share():
    system = described(request(), order(request())[0])
    assert system.order == ("web", "app", "middleware", "db")
    assert [t.replicas.value for t in system.tiers] == ["balanced", "balanced", "balanced", "partitioned"]
    assert [t.title for t in system.tiers[2:]] == ["SQL nodes (mysqld)", "Data nodes (ndbmtd)"]


def test_a_trial_records_what_the_cluster_is():
    soft = values(request())
    assert (soft["app_dbms"], soft["middleware_granularity"], soft["middleware_policy"]) == (
        "mysql", "connection", "round_robin"
    )  # fmt: skip
    assert (soft["db_replicas"], soft["db_search_index"], soft["middleware_pushed_joins"]) == (2, "full", "on")
    assert not {"middleware_pool_max", "db_buffer_pool_bytes"} & set(soft)


def test_connections_are_dealt_out_to_the_sql_nodes():
    """Each of them accepts its share of the application's, and some to spare."""
    app_pools = find(ROOT, "rubbos").rules.app_pools
    for sql_nodes in (1, 4):
        soft = values(request(f"1/2/{sql_nodes}/2C", scale="1", set=["app_pool_size=100"]))
        assert soft["db_max_connections"] == 2 * app_pools * 100 / sql_nodes + 40


@pytest.mark.parametrize(
    ("topo", "profile", "mib"),
    [("1/1/1/2C", "tiny", 32), ("1/1/1/2C", "small", 320), ("1/1/1/4C", "small", 160), ("1/1/1/2C", "standard", 992)],
)
def test_data_memory_follows_from_the_profile_and_the_nodes(topo, profile, mib):
    spec = request(topo, data=profile, scale="1")
    assert values(spec)["db_data_memory_bytes"] == mib * MIB


def test_the_estimate_has_the_rows_that_the_generator_makes():
    """Profile.java: users and authors, and user 0; days of new and old stories; uniform ranges by their middles."""
    text = (ROOT / "rubbos-app/src/main/java/io/ntier/rubbos/data/Profile.java").read_text()
    rules = type(find(ROOT, "rubbos").rules).check.__globals__
    assert "Range USUAL = new Range(20, 50)" in text
    for name, users, days, new, stories in (("tiny", 500, 40, 30, 8), ("small", 500_000, 180, 30, 20)):
        written = f"{users:_}" if users > 999 else str(users)
        low, high = (6, 10) if name == "tiny" else (15, 25)
        assert f'"{name}", {written}, 50, {days}, {new}, new Range({low}, {high}), USUAL' in text
        assert rules["PROFILES"][name] == (users + 51, new * stories, (days - new) * stories, 35, 35)
    assert set(rules["PROFILES"]) == set(find(ROOT, "rubbos").definition.data.profiles)


# ---- what is refused before anything starts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topo", "options", "says"),
    [
        ("1/1/1/1C", {}, "1 data node for 2 replicas; allowed are 2 or a multiple of it"),
        ("1/1/1/3C", {}, "3 data nodes cannot be shared out to groups of 2 replicas; allowed are multiples of 2"),
        ("1/1/9/2C", {}, "9 SQL nodes, but the cluster's configuration has 8 slots"),
        ("1/1/3/2C", {"set": ["db_sql_slots=2"]}, "3 SQL nodes, but the cluster's configuration has 2 slots"),
        ("1/1/1/2C", {"data": "standard", "scale": "0.1"}, "standard needs 992 MiB of DataMemory and about 360 MiB"),
        ("1/1/1/2C", {"set": ["db_data_memory_bytes=104857600"]}, "104857600 is too small for data small"),
        ("1/1/1/2C", {"set": ["db_replicas=3"]}, "set db_replicas: '3' is out of range; allowed are 1..2"),
        ("1/1/1/2C", {"middleware": "haproxy"}, "haproxy does not work with DBMS C; allowed with C are ndbsql"),
        ("1/1/1/2M", {"middleware": "ndbsql"}, "ndbsql does not work with DBMS M"),
        ("1/1/1/2C", {"set": ["db_search_index=prefix"]}, "mysql_cluster has no 'prefix'; allowed are full"),
    ],
)  # fmt: skip
def test_what_a_cluster_cannot_be_is_refused(topo, options, says):
    with pytest.raises(RequestError) as error:
        request(topo, **options)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_single_replica_and_more_slots_can_be_had():
    assert values(request("1/1/1/1C", set=["db_replicas=1"]))["db_data_memory_bytes"] == 320 * MIB
    assert request("1/1/9/2C", set=["db_sql_slots=9"]).topology.counts["middleware"] == 9


def test_the_memory_of_a_whole_machine_is_not_known_beforehand():
    request("1/1/1/2C", data="standard", target="hosts")


@pytest.mark.parametrize("command", ["sweep", "up"])
def test_without_the_programs_one_line_says_what_to_run(command, root, monkeypatch, capsys):
    monkeypatch.setenv("NTIER_ROOT", str(root))
    monkeypatch.setenv("NTIER_STATE", str(root / "state"))
    monkeypatch.setattr(sys, "argv", ["ntier", command, "--topo", "1/1/1/2C", "--needs"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: MySQL Cluster: its programs are not on this machine; run  make ndb")


def test_the_plan_shows_the_nodes_and_says_what_is_missing(lab, spec):
    machine, cluster = lab(), spec(topo="1/2/4/2C")
    text = plan_text(plan_data(machine, cluster))
    assert "[middleware4]" in text
    assert "beside them [management1]" in text
    assert "warning   MySQL Cluster: targets other than local have not been tried" in text
    assert "warning   MySQL Cluster: its programs are not on this machine" in text
    programs(machine)
    assert "its programs are not" not in plan_text(plan_data(machine, cluster))


def programs(machine) -> None:
    (machine.paths.state / "ndb").mkdir(parents=True, exist_ok=True)
    (machine.paths.state / "ndb/version.json").write_text("{}")


# ---- data ------------------------------------------------------------------------------------------------------------


def test_roles_load_the_tables_that_no_image_can_hold(lab, spec):
    machine, cluster = lab(), spec(topo="1/1/2/2C")
    assert sweep.run(machine, cluster) == 0
    folder = machine.paths.data / cluster.data_folder
    told = json.loads(machine.paths.deployment.read_text())
    assert told["ntier_data_source"] == str(folder)
    assert len(told["ntier_data_digest"]) == 64
    assert of_data(cluster.system, machine.paths.data, [], cluster.data_folder)["ntier.database_users"] == "500"
    assert of_tiers(machine, cluster)["ntier_data_digest"] == told["ntier_data_digest"], "made once"
    assert not any("ntier_data" in name for name in of_tiers(machine, spec(topo="1/1/1/2M")))


def test_data_are_kept_while_no_sql_node_runs(lab, spec, monkeypatch):
    """SQL nodes stop first and start last, each group at once; of other systems the nodes that hold the data do all."""
    asked = []
    machine = lab()
    sweep.run(machine, spec(topo="1/1/2/2C"))
    call = machine.nodes.call
    monkeypatch.setattr(machine.nodes, "call", lambda n, c, **more: asked.append((n.name, c)) or call(n, c, **more))
    node_state.keep(machine, spec(topo="1/1/2/2C"), "warm", "7")
    assert asked == [
        ("middleware1", "ntier-restore keep warm 7"), ("middleware2", "ntier-restore keep warm 7"),
        ("db1", "ntier-restore keep warm 7"), ("db2", "ntier-restore keep warm 7"),
        ("middleware1", "ntier-restore resume"), ("middleware2", "ntier-restore resume"),
    ]  # fmt: skip
    asked.clear()
    node_state.keep(machine, spec(topo="1/1/2/2M"), "warm", "8")
    assert asked == [("db1", "ntier-restore keep warm 8"), ("db2", "ntier-restore keep warm 8")]


@pytest.fixture
def writing(root) -> None:
    rows = "StoriesOfTheDay,StoreComment,1\nStoreComment,StoriesOfTheDay,1\n"
    (root / "workloads/mixes/read_write.csv").write_text(f"from,to,probability\n{rows}")


@pytest.mark.usefixtures("writing")
@pytest.mark.parametrize("change", ["none", "upgrade", "smaller", "re-made"])
def test_data_of_a_cluster_that_lacks_a_node_are_loaded_anew(lab, spec, monkeypatch, change):
    """Its copies belong to all of its nodes: the others would wait for the one that is gone, and not start."""
    machine = lab()
    assert sweep.run(machine, spec(topo="1/1/1/4C", mix="read_write", users="1000")) == 0
    assert machine.paths.written.exists()
    asked, machine = [], lab()
    if change == "re-made":
        machine.runner.world.node("db3")["kept"] = {}
    elif change == "upgrade":  # the version before noted no nodes, and its `ntier-restore` knows neither has nor drop
        machine.paths.written.write_text(machine.paths.written.read_text().splitlines()[0])
    elif change == "smaller":
        for name in ("db3", "db4"):  # Terraform takes them away
            del machine.runner.world.state["nodes"][name]
    call = Nodes.call
    monkeypatch.setattr(Nodes, "call", lambda self, n, c, **more: asked.append((n.name, c)) or call(self, n, c, **more))
    assert sweep.run(machine, spec(topo="1/1/1/2C" if change == "smaller" else "1/1/1/4C", users="1000")) == 0
    restored = [name for name, command in asked if command == "ntier-restore back loaded" and name.startswith("db")]
    dropped = [name for name, command in asked if command == "ntier-restore drop all"]
    data_nodes = ["db1", "db2"] if change == "smaller" else ["db1", "db2", "db3", "db4"]
    assert restored == (data_nodes if change in ("none", "upgrade") else [])
    assert dropped == ([] if change in ("none", "upgrade") else ["middleware1", *data_nodes])
    assert not machine.paths.written.exists()


@pytest.mark.usefixtures("writing")
def test_a_sweep_that_writes_compares_what_sql_nodes_see(lab, spec):
    machine, cluster = lab(), spec(topo="1/1/2/2C", mix="read_write", users="1000")
    assert sweep.run(machine, cluster) == 0
    (attempt,) = ledger.attempts(machine.paths.raw / cluster.sweep)["u01000.r01"]
    assert attempt.outcome == "valid"
    files = {file.path for file in attempt.manifest.files}
    assert {f for f in files if "data_after" in f} == {f"nodes/middleware{i}/data_after.json" for i in (1, 2)}
    assert attempt.manifest.system.order == ("web", "app", "middleware", "db")
    assert "management1" in {n.name for n in attempt.manifest.nodes}


@pytest.mark.parametrize(
    ("topo", "given", "place"),
    [
        ("1/1/1/2M", "middleware_pushed_joins=off", "dbms mysql_cluster"),
        ("1/1/1/2C", "middleware_pool_max=50", "middleware shardingsphere or haproxy"),
    ],
)
def test_a_setting_that_would_change_nothing_is_refused(topo, given, place):
    """It would stand in the manifest as if it had been in force."""
    with pytest.raises(
        RequestError, match=f"set {given.split('=')[0]}: it would change nothing here; it is for {place}"
    ):
        request(topo, set=[given])
