"""On real nodes: deploying again, check mode, pages through all tiers, who may connect to whom, secrets, collectors."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.parse
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.nodes("1/1/1/1M")
ROOT = Path(__file__).resolve().parents[2]
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
ABOVE = {"web": ("client", 80), "app": ("web", 8080), "middleware": ("app", 3306), "db": ("middleware", 3306)}
# SSH, the services, and what their programs would open if they were let: AJP, shutdown, status, X protocol, JMX
PORTS = (22, 80, 443, 1099, 3306, 3307, 5005, 8000, 8005, 8009, 8080, 8081, 9000, 33060, 33062, 50000)
SCAN = """
import concurrent.futures, itertools, socket, sys
def is_open(pair):
    with socket.socket() as probe:
        probe.settimeout(8)
        return probe.connect_ex((pair[0], int(pair[1]))) == 0
pairs = list(itertools.product(sys.argv[1].split(","), sys.argv[2].split(",")))
with concurrent.futures.ThreadPoolExecutor(len(pairs)) as pool:
    for pair, opened in zip(pairs, pool.map(is_open, pairs)):
        if opened:
            print(*pair)
"""


def test_deploying_again_changes_nothing(deployment):
    again = deployment.play("deploy")
    assert again.code == 0, again.failed or again.text
    assert again.changed == []
    assert again.done >= 10 * len(deployment.nodes)  # it did look


def test_every_program_that_runs_tells_its_version(deployment):
    for node in deployment.nodes:
        versions = json.loads(deployment.ssh(node, "ntier-node versions").stdout)
        unknown = {name for name, version in versions.items() if version == "unknown"}
        assert unknown <= ({"jmeter", "jvm"} if node["tier"] == "client" else {"pgjdbc", "mysql-connector-j"}), versions
        assert len(versions) >= 2, versions  # sysstat and what the role is about


def test_check_mode_says_that_nothing_would_change(deployment):
    check = deployment.play("deploy", "--check", "--diff")
    assert check.code == 0, check.failed or check.text
    assert check.changed == []


def test_check_mode_sees_what_would_change_and_changes_nothing(deployment):
    web = deployment.of_tier("web")[0]
    before = deployment.ssh(web, "sha256sum /etc/apache2/apache2.conf; systemctl show -p MainPID apache2").stdout
    check = deployment.play("deploy", "--check", "--diff", "-e", '{"web_max_workers": 17}', "--limit", "web")
    assert check.code == 0, check.failed or check.text
    assert f"{web['name']}: web : Configuration" in check.changed
    assert (
        deployment.ssh(web, "sha256sum /etc/apache2/apache2.conf; systemctl show -p MainPID apache2").stdout == before
    )


def test_check_mode_works_on_a_machine_that_has_nothing_yet(deployment, tmp_path):
    """A bare Debian as a rented host would be, made beside the deployment (image building's names are left alone)."""
    script = ROOT / "terraform/targets/local/node.sh"
    environment = {**os.environ, "NTIER_NODES": str(tmp_path / "nodes"), "NTIER_STATE": str(STATE)}
    node = {
        "name": "build-bare",
        "tier": "web",
        "index": 1,
        "node_type": "normal",
        "address": "198.18.190.11",
        "role": "web",
    }
    subprocess.run([script, "create", node["name"], "base-trixie", node["address"]], env=environment, check=True)
    try:
        (tmp_path / "nodes.json").write_text(json.dumps([node]))
        (tmp_path / "known_hosts").write_text((tmp_path / "nodes/build-bare/known_hosts").read_text())
        play = replace(deployment, nodes=[node], folder=tmp_path).play("deploy", "--check", "--diff")
        assert play.code == 0, play.failed or play.text
        assert "build-bare: program : Packages" in play.changed
    finally:
        subprocess.run([script, "delete", node["name"]], env=environment, check=True)


def test_a_wrong_variable_is_refused_by_its_type(deployment):
    play = deployment.play("deploy", "-e", '{"app_pool_mode": "none"}', "--limit", "app")
    assert play.code != 0
    assert any("app_pool_mode" in failure and "per_servlet" in failure for failure in play.failed), play.failed


def test_pages_come_through_all_tiers_and_verify_notices_when_not(deployment):
    good = deployment.play("verify")
    assert good.code == 0, good.failed or good.text
    app = deployment.of_tier("app")[0]
    assert deployment.ssh(app, "systemctl stop tomcat10").returncode == 0
    try:
        bad = deployment.play("verify")
        assert bad.code != 0
        assert any("Home page" in failure for failure in bad.failed)
    finally:
        deployment.ssh(app, "systemctl start tomcat10")
        assert deployment.play("deploy", "--limit", "app").code == 0


def test_services_listen_on_the_nodes_own_address_only(deployment):
    for node in deployment.nodes:
        lines = deployment.ssh(node, "ss -Hltn").stdout.splitlines()
        sockets = {tuple(line.split()[3].rsplit(":", 1)) for line in lines}
        wide = {(address, port) for address, port in sockets if address.strip("[]") in ("0.0.0.0", "*", "::")}
        assert {port for _, port in wide} <= {"22"}, f"{node['name']}: {wide}"


def test_each_node_may_connect_only_to_the_tier_below(deployment):
    addresses = {node["address"]: node for node in deployment.nodes}
    arguments = f"{','.join(addresses)} {','.join(map(str, PORTS))}"
    for source in deployment.nodes:
        open_ports = deployment.ssh(source, f"python3 - {arguments}", SCAN).stdout.splitlines()
        seen = {(addresses[line.split()[0]]["name"], int(line.split()[1])) for line in open_ports}
        others = {(name, port) for name, port in seen if name != source["name"]}
        allowed = {
            (node["name"], ABOVE[node["tier"]][1])
            for node in deployment.nodes
            if ABOVE.get(node["tier"], ("",))[0] == source["tier"] and node is not source
        }
        assert others == allowed, f"from {source['name']}"


def test_the_controller_reaches_ssh_alone(deployment):
    arguments = [",".join(node["address"] for node in deployment.nodes), ",".join(map(str, PORTS))]
    reached = subprocess.run(
        [sys.executable, "-c", SCAN, *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert set(reached.splitlines()) == {f"{node['address']} 22" for node in deployment.nodes}


def test_secrets_are_only_in_files_that_their_service_may_read(deployment):
    secrets = list(yaml.safe_load((STATE / "local/secrets.yml").read_text()).values())
    forms = {form for s in secrets for form in (s, urllib.parse.quote(s), base64.b64encode(s.encode()).decode())}
    search = (
        "cat >/run/patterns; chmod 600 /run/patterns; grep -rlFf /run/patterns /etc /opt /var/log /var/lib/tomcat10 "
    )
    search += "/usr/local /run/ntier 2>/dev/null; journalctl --no-pager | grep -cFf /run/patterns; "
    search += "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | grep -cFf /run/patterns; rm /run/patterns"
    holders = 0
    for node in deployment.nodes:
        *files, journal, processes = deployment.ssh(node, search, "\n".join(forms)).stdout.split()
        assert (journal, processes) == ("0", "0"), node["name"]
        holders += len(files)
        for path in files:
            mode = deployment.ssh(node, f"stat -c %a {path}").stdout.strip()
            assert mode in ("600", "640"), f"{node['name']}:{path} has mode {mode}"
    assert holders >= 4  # the search does find: app, middleware, db (accounts, monitor)


def test_collectors_of_every_node(deployment):
    expected = {
        "web": ["apache_status"],
        "app": ["tomcat_status"],
        "middleware": ["middleware_status"],
        "db": ["mysql_status"],
    }
    folder = "/run/ntier/test-collectors"
    for node in deployment.nodes:
        reset = deployment.ssh(node, "ntier-node reset")
        assert reset.returncode == 0, reset.stderr
        started = json.loads(deployment.ssh(node, f"ntier-node start {folder}").stdout)["collectors"]
        assert started == ["sysstat", *expected.get(node["tier"], [])]
    for node in deployment.nodes:
        alive = json.loads(deployment.ssh(node, LIVING).stdout)
        assert alive["dead"] + alive["silent"] == [], node["name"]
        end = json.loads(deployment.ssh(node, f"ntier-node stop {folder}").stdout)
        assert end["errors"] == []
        assert {collector["state"] for collector in end["collectors"].values()} == {"stopped"}
        listed = deployment.ssh(
            node, f"ntier-node pack {folder} | tar --zstd -t && ntier-node drop {folder}"
        ).stdout.split()
        assert {"./end.json", "./sysstat.sa", "./sysstat.json", "./logs/journal.log"} <= set(listed)


def test_every_request_is_in_the_access_log_once(deployment):
    web, client = deployment.of_tier("web")[0], deployment.of_tier("client")[0]
    assert deployment.ssh(web, "ntier-node reset").returncode == 0
    page = f"http://{web['address']}/rubbos/browse.html"
    get = f"import urllib.request as u; [u.urlopen('{page}').read() for _ in range(57)]"
    assert deployment.ssh(client, f'python3 -c "{get}"').returncode == 0
    lines = deployment.ssh(web, "cat /var/log/ntier/access.log").stdout.splitlines()
    assert len(lines) == 57
    start_s, duration_us, status, size, app, request = lines[0].split(" ", 5)
    assert len(start_s.split(".")[1]) == 3
    assert (status, app, request) == ("200", "-", '"GET /rubbos/browse.html HTTP/1.1"')
    assert int(duration_us) >= 0
    assert int(size) > 0


# What they say of themselves once none of them is silent: a machine may stand still for some seconds.
LIVING = 'for _ in $(seq 30); do said=$(ntier-node alive) && break; sleep 1; done; echo "$said"'


ANEW = """
import resource, subprocess
client = ["mysql", "--defaults-file=/etc/ntier/mysql/monitor.cnf", "--batch", "-e", "SHOW GLOBAL STATUS"]
for _ in range(10):
    subprocess.run(client, stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(round(1e6 * (used.ru_utime + used.ru_stime)))
"""


@pytest.mark.alone
def test_collecting_mysql_costs_far_less_than_a_client_a_second(deployment, measured):
    """CPU of the collector and its client over 10 s, beside that of ten clients which ask for the same and end. Both
    are measured on the same node one after the other, so a slow machine makes both slow (measured: a fiftieth)."""
    db = deployment.of_tier("db")[0]
    program = """
    ntier-node reset >/dev/null && ntier-node start /run/ntier/test-cost >/dev/null
    processes() { pgrep -f '[m]ysql_status'; pgrep -f '[d]efaults-file=/etc/ntier/mysql/monitor.cnf'; }
    used() { for p in $1; do cat /proc/$p/task/*/schedstat; done | awk '{ns += $1} END {print int(ns / 1000)}'; }
    at_first=$(processes); before=$(used "$at_first"); sleep 10; after=$(used "$at_first"); at_last=$(processes)
    ntier-node stop /run/ntier/test-cost >/dev/null; ntier-node drop /run/ntier/test-cost
    new=$(python3 -c '$ANEW'); echo $((after - before)) $new $at_first / $at_last"""

    def measure() -> tuple[int, int, list[str], list[str]]:
        done = deployment.ssh(db, program.replace("$ANEW", ANEW))
        figures, _, at_last = done.stdout.partition("/")
        used_us, new_us, *at_first = figures.split() or pytest.fail(done.stderr)
        return int(used_us), int(new_us), at_first, at_last.split()

    def is_good(found: tuple[int, int, list[str], list[str]]) -> bool:
        used_us, new_us, at_first, at_last = found
        return at_first == at_last != [] and 0 < used_us < new_us / 5

    found = measured(measure, is_good)
    assert is_good(found), "us of the collector, of ten clients; processes before and after"
