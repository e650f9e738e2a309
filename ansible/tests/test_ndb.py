"""MySQL Cluster's roles without its programs: the rendered configuration, the collectors' queries, and the node scripts
beside stand-ins for the programs that they call."""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import runpy
import subprocess
import threading
import time
from pathlib import Path

import jinja2
import pytest
import yaml

ROLES = Path(__file__).resolve().parents[1] / "roles"
MIB = 1 << 20
# of MySQL's manual, The ndbinfo ... Table
NDBINFO = {
    "memoryusage": "node_id memory_type used used_pages total total_pages",
    "logbuffers": "node_id log_type log_id log_part total used",
    "logspaces": "node_id log_type log_id log_part total used",
    "locks_per_fragment": "fq_name parent_fq_name type table_id node_id block_instance fragment_num ex_req ex_imm_ok "
    "ex_wait_ok ex_wait_fail sh_req sh_imm_ok sh_wait_ok sh_wait_fail wait_ok_millis wait_fail_millis",
    "cluster_locks": "node_id block_instance tableid fragmentid rowid transid mode state detail op duration_millis "
    "lock_num waiting_for",
    "transporters": "node_id remote_node_id status remote_address bytes_sent bytes_received connect_count overloaded "
    "overload_count slowdown slowdown_count encrypted",
    "counters": "node_id block_name block_instance counter_id counter_name val",
}
COUNTERS = {
    "DBTC": "READS TABLE_SCANS RANGE_SCANS",
    "DBSPJ": "READS_RECEIVED TABLE_SCANS_RECEIVED RANGE_SCANS_RECEIVED SCAN_BATCHES_RETURNED",
}
WORDS = {
    "COALESCE",
    "SUM",
    "IF",
    "SELECT",
    "FROM",
    "WHERE",
    "ndbinfo",
    "Data",
    "memory",
    "Long",
    "message",
    "buffer",
    "REDO",
    "W",
    "AND",
    "IN",
    *COUNTERS,
    *" ".join(COUNTERS.values()).split(),
}


def defaults(role: str) -> dict:
    return yaml.safe_load((ROLES / role / "defaults/main.yml").read_text())


def rendered(role: str, name: str, **more: object) -> str:
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    own = {k: v for k, v in defaults(role).items() if not str(v).startswith("{{")}
    shared = {k: v for k, v in defaults("ndb").items() if not str(v).startswith("{{")}
    known = {"ansible_managed": "", "ndb_cluster_digest": "d1", **shared, **own, **more}
    return environment.from_string((ROLES / role / "templates" / name).read_text()).render(known)


def config(threads: str = "split", slots: int = 4) -> str:
    return rendered(
        "ndbmgmd", "config.ini.j2", address="198.18.5.1", ndbmgmd_data_nodes=["198.18.4.1", "198.18.4.2"],
        ndbmgmd_sql_nodes=["198.18.3.1", "198.18.3.2"], ndbmgmd_replicas=2, ndbmgmd_sql_slots=slots,
        ndbmgmd_data_memory_bytes=288 * MIB, ndbmgmd_threads=threads,
    )  # fmt: skip


def sections(text: str) -> list[tuple[str, dict[str, str]]]:
    """NDB's sections have the same name several times."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[-1][1][name] = value
    return found


def test_the_cluster_s_configuration_has_every_node_and_the_free_slots():
    parts = sections(config())
    assert [name for name, _ in parts] == [
        "ndb_mgmd default", "ndbd default", "ndb_mgmd", "ndbd", "ndbd", "mysqld", "mysqld", "mysqld", "mysqld"
    ]  # fmt: skip
    ids = [(p["NodeId"], p.get("HostName")) for name, p in parts if "default" not in name]
    assert ids == [
        ("200", "198.18.5.1"), ("1", "198.18.4.1"), ("2", "198.18.4.2"), ("201", "198.18.3.1"), ("202", "198.18.3.2"),
        ("203", None), ("204", None),
    ]  # fmt: skip
    usual = dict(parts)["ndbd default"]
    assert (usual["NoOfReplicas"], usual["ServerPort"], usual["DataMemory"]) == ("2", "2202", str(288 * MIB))


@pytest.mark.parametrize(("threads", "ldm"), [("split", 1), ("single", 0)])
def test_threads_are_set_by_hand(threads, ldm):
    usual = dict(sections(config(threads)))["ndbd default"]
    assert usual["AutomaticThreadConfig"] == "0"
    assert f"ldm={{count={ldm}}}" in usual["ThreadConfig"]
    assert "recv={count=1}" in usual["ThreadConfig"]


@pytest.mark.parametrize(("batched", "switch"), [("off", None), ("on", "batched_key_access=on,mrr_cost_based=off")])
def test_a_sql_node_s_configuration(batched, switch):
    text = rendered(
        "ndbsql", "my.cnf.j2", address="198.18.3.2", ndbsql_nodes=["198.18.3.1", "198.18.3.2"],
        ndbsql_max_connections=500, ndbsql_pushed_joins="off", ndbsql_batched_keys=batched,
        ndbsql_management="198.18.5.1",
    )  # fmt: skip
    file = configparser.ConfigParser(allow_no_value=True)
    file.read_string(text)
    told = file["mysqld"]
    assert (told["ndb_nodeid"], told["bind_address"], told["ndb_join_pushdown"]) == ("202", "198.18.3.2", "OFF")
    assert told["ndb_connectstring"] == "198.18.5.1:1186"
    assert told.get("optimizer_switch") == switch


def test_data_nodes_ask_the_sql_nodes_in_turn_and_may_see_counters_only():
    asked = {}
    nodes = ["198.18.4.1", "198.18.4.2", "198.18.4.3", "198.18.4.4"]
    for address in nodes:
        text = rendered(
            "ndbmtd", "monitor.cnf.j2", address=address, ndbmtd_data_nodes=nodes,
            ndbmtd_sql_nodes=["198.18.3.1", "198.18.3.2"], monitor_db_password="p",
        )  # fmt: skip
        file = configparser.ConfigParser(allow_no_value=True)
        file.read_string(text)
        asked[address] = file["client"]["host"]
    assert list(asked.values()) == ["198.18.3.1", "198.18.3.2"] * 2
    accounts = rendered(
        "ndbsql", "accounts.sql.j2", ndbsql_clients=["198.18.2.1"], ndbsql_databases=nodes, app_db_password="a",
        monitor_db_password="p",
    )  # fmt: skip
    grants = [line for line in accounts.splitlines() if "ntier_ndb_monitor" in line and line.startswith("GRANT")]
    assert len(grants) == 4
    assert all(line.startswith("GRANT SELECT ON ndbinfo.* TO") for line in grants)


# ---- what runs on nodes ----------------------------------------------------------------------------------------------


def collector(role: str, name: str, monkeypatch) -> dict:
    for folder in (ROLES / "monitor/files/lib", ROLES / "ndbmtd/files"):
        monkeypatch.syspath_prepend(str(folder))
    return runpy.run_path(str(ROLES / role / "files" / name))


def test_the_collector_asks_for_columns_that_ndbinfo_has(monkeypatch):
    status = collector("ndbmtd", "ndb_status", monkeypatch)
    assert set(status["TABLES"]) == set(NDBINFO)
    for table, columns in status["TABLES"].items():
        words = {
            w for text in columns.values() for w in "".join(c if c.isalnum() or c == "_" else " " for c in text).split()
        }
        assert {w for w in words if not w.isdigit()} - WORDS <= set(NDBINFO[table].split()), table
    assert all(query.endswith("WHERE node_id = 2") for query, _ in status["queries"](2))
    assert [c for _, columns in status["queries"](2) for c in columns] == list(status["COLUMNS"])
    assert len(status["COLUMNS"]) == len(set(status["COLUMNS"]))


def test_a_line_has_the_columns_that_were_asked_for_and_leaves_the_others_empty(monkeypatch):
    status = collector("ndbmtd", "ndb_status", monkeypatch)
    line = status["line"](1.5, ("locks_waiting",), ["3"])
    asked = dict(zip(status["COLUMNS"], line.rstrip("\n").split(",")[1:], strict=True))
    assert line.startswith("1.500000,")
    assert {name: value for name, value in asked.items() if value} == {"locks_waiting": "3"}


def test_threads_are_named_by_kind_and_number_and_read_from_the_kernel(monkeypatch):
    program = collector("ndbmtd", "ndb_threads", monkeypatch)
    assert program["threads"]([["0", "main", "338"], ["2", "ldm", "340"]]) == {"main0": 338, "ldm2": 340}
    before, end = program["used_us"](threading.get_native_id()), time.thread_time() + 0.2
    while time.thread_time() < end:
        pass
    assert 0.2e6 <= program["used_us"](threading.get_native_id()) - before < 0.4e6
    with pytest.raises(OSError, match="schedstat"):
        program["used_us"](2**22 + 1)


def test_states_of_data_nodes_are_read(monkeypatch):
    states = collector("ndbmgmd", "cluster_status", monkeypatch)["states"]
    lines = [
        "ndb_mgm> Node 1: started (mysql-9.7.4 ndb-9.7.4)\n",
        "Node 2: not connected\n",
        "\n",
        "Node 12: starting (Last",
    ]
    assert states(lines) == {1: "started", 2: "not", 12: "starting"}


def script(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "bin" / name).chmod(0o755)


def run(tmp_path: Path, file: str, *arguments: str, **told: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", **told}
    return subprocess.run(["sh", ROLES / file, *arguments], env=environment, capture_output=True, text=True)


def test_a_data_node_keeps_its_files_until_the_cluster_is_another_one(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    script(tmp_path, "ndbmtd", 'echo "$@"')
    told = {"NDBMTD_DATA": str(data), "NDBMTD": str(tmp_path / "bin/ndbmtd"), "CONNECT": "198.18.5.1", "NODE_ID": "2"}
    first = run(tmp_path, "ndbmtd/files/start", **told, LAYOUT="2-2-split")
    assert "--initial --ndb-connectstring=198.18.5.1 --ndb-nodeid=2" in first.stdout, first.stderr
    (data / "rows").write_text("rows")
    again = run(tmp_path, "ndbmtd/files/start", **told, LAYOUT="2-2-split")
    assert "--initial" not in again.stdout
    assert (data / "rows").exists()
    other = run(tmp_path, "ndbmtd/files/start", **told, LAYOUT="4-2-split")
    assert "--initial" in other.stdout
    assert not (data / "rows").exists()


def awaited(tmp_path, answers: str, idle_s: str = "4") -> subprocess.CompletedProcess[str]:
    """ndbsql-awaits d1 beside an ndbsql-loaded that gives one answer after the other, the last one for ever."""
    script(tmp_path, "sleep", "")
    (tmp_path / "answers").write_text(answers)
    script(tmp_path, "loaded", f"f={tmp_path}/answers; head -n 1 $f; [ $(wc -l <$f) = 1 ] || sed -i 1d $f")
    return run(tmp_path, "ndbsql/files/awaits", "d1", LOADED=str(tmp_path / "bin/loaded"), IDLE_S=idle_s)


def test_a_sql_node_waits_while_another_one_loads(tmp_path):
    assert awaited(tmp_path, "d0\n" + "loading\n" * 20 + "d1\n").returncode == 0


def test_a_sql_node_does_not_wait_for_data_that_nobody_loads(tmp_path):
    done = awaited(tmp_path, "loading\nnone\n")
    assert (done.returncode, done.stderr) == (1, "the cluster does not get the data d1; it holds: none\n")


def test_files_of_a_data_node_are_kept_once_and_brought_back(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "rows").write_text("before")
    script(tmp_path, "systemctl", f'echo "$1" >>{tmp_path}/log')
    script(tmp_path, "sleep", "")
    told = {"NDBMTD_DATA": str(data)}
    restore = "ndbmtd/files/restore"
    assert run(tmp_path, restore, "back", "warm", **told).returncode == 0, "nothing was kept: nothing happens"
    for _ in range(2):
        assert run(tmp_path, restore, "keep", "warm", "7", **told).returncode == 0
        (data / "rows").write_text("after")
    assert run(tmp_path, restore, "back", "warm", **told).returncode == 0
    assert (data / "rows").read_text() == "before"
    assert (tmp_path / "log").read_text().split() == ["stop", "start", "stop", "start"]
    assert run(tmp_path, restore, "wipe", "warm", **told).returncode == 2


def test_a_data_node_begins_without_data_once_they_are_dropped(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "layout").write_text("4 2")
    script(tmp_path, "systemctl", f'echo "$1" >>{tmp_path}/log')
    script(tmp_path, "sleep", "")
    told, restore = {"NDBMTD_DATA": str(data)}, "ndbmtd/files/restore"
    assert run(tmp_path, restore, "has", "loaded", **told).returncode == 1
    assert run(tmp_path, restore, "keep", "loaded", "7", **told).returncode == 0
    assert run(tmp_path, restore, "has", "loaded", **told).returncode == 0
    assert run(tmp_path, restore, "drop", "all", **told).returncode == 0
    assert run(tmp_path, restore, "has", "loaded", **told).returncode == 1
    assert not (data / "layout").exists()
    assert (tmp_path / "log").read_text().split() == ["stop", "start", "stop"], "the deployment starts it"


def test_an_upgrade_of_the_configuration_is_another_cluster(tmp_path):
    """Data nodes read it when they start."""
    task = yaml.safe_load((ROLES / "ndb/tasks/known.yml").read_text())[0]
    for file in ("templates/config.ini.j2", "defaults/main.yml"):
        (tmp_path / "ndbmgmd" / file).parent.mkdir(parents=True)
        (tmp_path / "ndbmgmd" / file).write_text((ROLES / "ndbmgmd" / file).read_text())
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters |= {"to_json": json.dumps, "hash": lambda text, _: hashlib.sha256(text.encode()).hexdigest()}
    environment.globals["lookup"] = lambda _, path: Path(path).read_text()
    known = {"ntier_addresses": {tier: ["198.18.4.1"] for tier in ("management", "db", "middleware")}, "db_replicas": 2,
             "db_sql_slots": 4, "db_data_memory_bytes": 288 * MIB, "db_threads": "split",
             "role_path": f"{tmp_path}/ndb"}  # fmt: skip
    (tmp_path / "ndb").mkdir()

    def digest() -> str:
        more = {name: [environment.from_string(t).render(known) for t in texts] for name, texts in task["vars"].items()}
        text = task["ansible.builtin.set_fact"]["ndb_cluster_digest"]
        return environment.from_string(text).render(known, **more)

    before = digest()
    assert digest() == before
    own = tmp_path / "ndbmgmd/defaults/main.yml"
    own.write_text(own.read_text().replace("ndbmgmd_heartbeat_ms: 15000", "ndbmgmd_heartbeat_ms: 5000"))
    assert digest() != before


def test_how_many_data_nodes_are_started(tmp_path):
    script(tmp_path, "ndb_mgm", "printf 'Node 1: started (mysql-9.7.4 ndb-9.7.4)\\nNode 2: not connected\\n'")
    assert run(tmp_path, "ndbmgmd/files/ndb-nodes", "198.18.5.1").stdout == "1 2\n"


@pytest.mark.parametrize("file", sorted(ROLES.glob("ndb*/files/*")), ids=lambda f: f"{f.parts[-3]}-{f.name}")
def test_each_program_can_be_read(file):
    text = file.read_text()
    if text.startswith("#!/bin/sh"):
        assert subprocess.run(["sh", "-n", file]).returncode == 0
    elif file.suffix == ".py" or text.startswith("#!/usr/bin/python3"):
        compile(text, str(file), "exec")
