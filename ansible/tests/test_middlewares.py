"""Each middleware on real nodes, between the application and two replicas: pages, the split of statements, what is
recorded of it, and that a trial can begin anew."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ntier_analysis.parsers.status import middleware_status
from ntier_harness.systems import find
from testnode import SCALE

ROOT = Path(__file__).resolve().parents[2]
MIDDLEWARES = find(ROOT, "rubbos").definition.variants["middleware"].choices
BIN = Path(sys.executable).parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
DEPLOYED = [("haproxy", "M")]  # it takes some minutes; ShardingSphere-Proxy has tests of its own
# Those of make test-faults
MORE = [("haproxy", "P"), ("pgpool", "P"), ("pgbouncer", "P"), ("mysqlrouter", "M"), ("proxysql", "M")]
STATEMENTS = 200
WHERE = {"M": "SELECT @@hostname", "P": "SELECT host(inet_server_addr())"}
CLASSES = "/opt/ntier/app/rubbos/WEB-INF/classes:/opt/ntier/app/rubbos/WEB-INF/lib/*:/usr/share/tomcat10/lib/*"
PAGES = """
import sys, urllib.request
for i in range(60):
    name = ("StoriesOfTheDay", "BrowseCategories", "OlderStories")[i % 3]
    url = f"http://{sys.argv[1]}/rubbos/servlet/edu.rice.rubbos.servlets.{name}"
    with urllib.request.urlopen(url, timeout=60) as page:
        assert page.status == 200 and b"ERROR" not in page.read(), name
"""


def parameters():
    for pair in [*DEPLOYED, *MORE]:
        marks = [pytest.mark.nodes(f"1/1/1/2{pair[1]}"), *([pytest.mark.faults] if pair in MORE else [])]
        yield pytest.param(pair, id="-".join(pair), marks=marks)


@pytest.fixture(scope="session")
def images(request) -> set[str]:
    """The images of this machine, with those of all middlewares that are tested now: made together, in parallel."""
    file = STATE / "images.json"
    items = [item for item in request.session.items if "through" in getattr(item, "fixturenames", ())]
    wanted = {item.callspec.params["through"][0] for item in items}
    if not os.environ.get("PROXYSQL_BINARY"):
        wanted -= {"proxysql"}
    there = set(json.loads(file.read_text())) if file.exists() else set()
    if wanted - there:
        subprocess.run([sys.executable, ROOT / "setup/images", "--images", ",".join(sorted(wanted))], check=True)
    return there | wanted


@pytest.fixture(scope="module", params=parameters())
def through(request, images, deployments, nodes_that_run):
    """(deployment of 1/1/1/2 with the middleware, its name, letter of the DBMS)."""
    name, letter = request.param
    if name not in images:
        pytest.skip("no ProxySQL at hand: PROXYSQL_BINARY=/path/to/its.deb (make doctor says where it is)")
    options = ["--topo", f"1/1/1/2{letter}", "--middleware", name, *SCALE]
    for command in ("up", "deploy"):
        subprocess.run([BIN / "ntier", command, *options], cwd=ROOT, check=True)
    return nodes_that_run(), name, letter


def replicas_asked(deployment, letter, tmp_path: Path) -> dict[str, int]:
    """Replica -> how many of STATEMENTS on one JDBC connection it answered."""
    javac = ["javac", "--release", "17", "-d", str(tmp_path), str(Path(__file__).with_name("Split.java"))]
    subprocess.run(javac, check=True)
    app = deployment.of_tier("app")[0]
    encoded = base64.b64encode((tmp_path / "Split.class").read_bytes()).decode()
    unpacked = deployment.ssh(app, "mkdir -p /run/split && base64 -d >/run/split/Split.class", encoded)
    assert unpacked.returncode == 0, unpacked.stderr
    done = deployment.ssh(app, f"java -Xmx64m -cp '/run/split:{CLASSES}' Split '{WHERE[letter]}' {STATEMENTS}")
    assert done.returncode == 0, done.stderr
    by_address = {node["address"]: node["name"] for node in deployment.of_tier("db")}
    answers = dict(line.split() for line in done.stdout.splitlines())
    return {by_address.get(answer, answer): int(times) for answer, times in answers.items()}


def test_a_connections_statements_are_shared_out_by_the_granularity(through, tmp_path):
    deployment, name, letter = through
    middleware = MIDDLEWARES[name]
    split = replicas_asked(deployment, letter, tmp_path)
    print(f"{name} {letter}: {split}")
    assert sum(split.values()) == STATEMENTS
    if middleware.variables["middleware_granularity"] == "connection":
        assert len(split) == 1
    elif {"random", "weighted_random"} & set(middleware.settings["middleware_policy"]):
        assert set(split) == {"db1", "db2"}
        assert max(split.values()) < 140  # of 200 by chance alone: 100 +- 7
    else:  # in turn over idle connections; one that was just given back may be passed over
        assert set(split) == {"db1", "db2"}
        assert max(split.values()) <= 110


def test_the_split_of_pages_is_recorded(through, tmp_path):
    deployment, name, _ = through
    middleware = MIDDLEWARES[name]
    node, client, web = (deployment.of_tier(tier)[0] for tier in ("middleware", "client", "web"))
    folder = "/run/ntier/test-middleware"
    assert deployment.ssh(node, f"ntier-node reset && ntier-node start {folder}").returncode == 0
    pages = deployment.ssh(client, f"python3 - {web['address']}", PAGES)
    assert pages.returncode == 0, pages.stderr
    time.sleep(4)  # its status is written once a second
    text = deployment.ssh(node, f"cat {folder}/middleware_status.csv").stdout
    deployment.ssh(node, f"ntier-node stop {folder} && ntier-node drop {folder}")
    text = text[text.index("t_s,") :]
    print(text[-400:])
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["replica"] for row in rows} == {"db1", "db2"}
    latest = rows[-2:]
    counted = [column for column in ("executed_total", "chosen_total") if latest[0][column] != ""]
    for column in counted:
        assert all(int(row[column]) > 0 for row in latest), column
    if (
        middleware.variables["middleware_granularity"] == "connection"
        and "least_connections" in middleware.settings["middleware_policy"]
    ):
        open_now = [int(row["pending"]) for row in latest]
        assert max(open_now) - min(open_now) <= 1
    (tmp_path / "status.csv").write_text(text)
    frame, backwards = middleware_status(tmp_path / "status.csv")
    assert backwards == 0
    assert len(frame)
    assert frame.groupby("metric")["value"].count().min() > 0  # what the program cannot tell is left out, not empty


def test_it_can_begin_anew_and_deploying_again_changes_nothing(through):
    deployment, name, _ = through
    node = deployment.of_tier("middleware")[0]
    assert deployment.ssh(node, "ntier-node reset").returncode == 0
    facts = json.loads(deployment.ssh(node, "ntier-node facts").stdout)
    assert [service["state"] for service in facts["services"]] == ["active"]
    assert any(facts["packages"].values()), name
    again = deployment.play("deploy")
    assert again.code == 0, again.failed or again.text
    assert again.changed == []


def test_it_listens_on_its_own_address_only(through):
    deployment, _, letter = through
    node = deployment.of_tier("middleware")[0]
    listening = deployment.ssh(node, "ss -Htln | awk '{print $4}'").stdout.split()
    port = {"M": "3306", "P": "5432"}[letter]
    assert f"{node['address']}:{port}" in listening
    others = [at for at in listening if not at.endswith(":22") and not at.startswith(f"{node['address']}:")]
    assert [at for at in others if not at.startswith(("127.", "[::1]"))] == []


def test_one_replica_has_room_for_the_check_beside_the_application(through):
    """The application holds all of its connections at the only replica when the middleware is checked."""
    _, name, letter = through
    if MIDDLEWARES[name].traits["multiplexes"]:
        pytest.skip("the application's connections hold none at the replicas")
    options = ["--topo", f"1/1/1/1{letter}", "--middleware", name, *SCALE]
    for command in ("up", "deploy"):
        subprocess.run([BIN / "ntier", command, *options], cwd=ROOT, check=True)


def test_it_holds_no_secret_that_others_can_read(through):
    deployment, name, _ = through
    node = deployment.of_tier("middleware")[0]
    secrets = (STATE / "local/secrets.yml").read_text().split()[1::2]
    readable = deployment.ssh(
        node, f"find /etc -type f -perm -o=r -print0 | xargs -0 grep -lF {' '.join(f'-e {s}' for s in secrets)}"
    )
    assert readable.stdout == "", name
