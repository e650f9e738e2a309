"""A system that runs already (`deploy: none`): what its machines must have, what comes to them, and the page."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ntier_harness import existing
from ntier_harness.cli import main
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.request import make_spec
from ntier_harness.runner import Done, Runner
from ntier_harness.spec import Spec
from ntier_harness.ssh import Access
from ntier_harness.systems.reading import examine
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.survey import PYTHON_LEAST, SCRIPT, Serving, Strangers

from .page import ROOT, copy_checkout, files_shown

OURS = "me-1234"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the files of the page."""
    checkout = tmp_path_factory.mktemp("own") / "checkout"
    copy_checkout(checkout)
    for name, text in files_shown().items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
    return checkout


def request_of(checkout: Path, **options: str) -> Spec:
    return make_spec({"system": "shop", "topo": "1/1", "target": "hosts"} | options, checkout, 2)


def test_the_page_shows_a_whole_system(shop):
    assert set(files_shown()) == {"systems/shop/system.yaml", "systems/shop/requests.csv", "lab.yaml"}
    assert examine(shop / "systems/shop", shop / "ansible/roles")[1] == []
    spec = request_of(shop)
    assert spec.sweep == "shop.1-1.visits.hosts"
    assert spec.system.definition.warm_up_s == 0, "nobody asked for load beside the trials"


def test_only_machines_that_exist_can_have_it(shop):
    with pytest.raises(RequestError, match=r"system shop runs already \(deploy: none\); allowed: hosts$"):
        request_of(shop, target="local")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("ports: [80],", "ports: [80], roles: [web],", "tiers.0.roles: with deploy: none nothing is deployed"),
        ("ports: [80],", "ports: [80], holds: [/var],", "tiers.0.holds: with deploy: none nothing is deployed"),
        ("notation:", "settings: {workers: {title: W, tier: web, range: [1, 9], default: 1}}\nnotation:",
         "settings.workers: with deploy: none nothing is deployed, so nothing would apply the setting"),
        ("notation:", "data: {tier: prices, profiles: {s: small}, default: s}\nnotation:",
         "data: with deploy: none nothing is deployed"),
        ("verify:\n", "verify:\n  playbook: system.yaml\n", "verify.playbook: with deploy: none nothing is deployed"),
        ("notation:", "variants: {v: {title: V, tier: web, default: a, choices: {a: {roles: [web]}}}}\nnotation:",
         "variants.v.choices.a.roles: with deploy: none nothing is deployed"),
        ("deploy: none", "deploy: nothing", "deploy: Input should be 'roles' or 'none' (found 'nothing')"),
    ],
)  # fmt: skip
def test_what_nobody_would_heed_is_refused(shop, tmp_path, old, new, says):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "requests.csv").touch()
    text = files_shown()["systems/shop/system.yaml"]
    assert old in text
    (folder / "system.yaml").write_text(text.replace(old, new, 1))
    problems = [str(problem) for problem in examine(folder, ROOT / "ansible/roles")[1]]
    assert any(says in line for line in problems), problems


def test_units_are_for_systems_that_run_already(tmp_path):
    folder = tmp_path / "toy"
    folder.mkdir()
    text = (ROOT / "systems/toy/system.yaml").read_text()
    (folder / "system.yaml").write_text(text.replace("ports: [80]", "ports: [80], units: [toy.service]"))
    assert any("tiers.0.units: are for deploy: none" in str(p) for p in examine(folder, ROOT / "ansible/roles")[1])


# ---- what a machine must have ----------------------------------------------------------------------------------------


def wrong(expected: Serving, **changes: str) -> str:
    """What is wrong with this machine, asked as one is over SSH, if it says `changes` otherwise."""
    shell = subprocess.run(["sh", "-c", SCRIPT + expected.look()], capture_output=True, text=True, check=True)
    said = dict(line.split("=", 1) for line in shell.stdout.splitlines() if "=" in line)
    usual = {"uid": "0", "owner": "", "folder": "", "missing": "", "python_new": "True", "apt": "/usr/bin/apt-get"}
    return expected.wrong({**said, **usual, **changes}, OURS)


def missing(expected: Serving) -> str:
    shell = subprocess.run(["sh", "-c", SCRIPT + expected.look()], capture_output=True, text=True, check=True)
    return next(line for line in shell.stdout.splitlines() if line.startswith("missing="))


def test_a_machine_with_all_of_it_is_right():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert wrong(Serving(ports=(port,), services=(Path("/proc/self/comm").read_text().strip(),))) == ""
    assert wrong(Serving(ports=(port,))) == f"nothing listens on port {port}"


def test_what_a_machine_lacks_is_one_line_with_what_mends_it():
    assert wrong(Serving(), missing="sadc sadf zstd ") == (
        "lacks sadc, sadf, zstd; run there: apt-get install sysstat zstd"
    )
    assert missing(Serving(programs=("no-such-driver",))).endswith("no-such-driver ")
    assert wrong(Serving(), missing="no-such-driver ") == "lacks no-such-driver"
    assert wrong(Serving(packages=("no-such-package",)), missing="zstd ") == (
        "lacks zstd, no-such-package; run there: apt-get install zstd no-such-package"
    )
    assert wrong(Serving(), python_new="False") == "its Python is older than 3.9"
    two = wrong(Serving(services=("no-such-server",), units=("no-such.service",)))
    assert two == "unit no-such.service is not active; no-such-server does not run"


def test_a_machine_need_not_be_debian(tmp_path):
    """Others keep sadc elsewhere; ntier-node finds it there, too. What they lack they do not get by apt."""
    for name in ("sadc", "rpm"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$0 $*"\n')
        (tmp_path / name).chmod(0o755)

    def said_to(command: str) -> list[str]:
        """By a shell of its own."""
        for place in ("/usr/libexec/sysstat", "/usr/lib/sysstat"):  # this machine may be a Debian
            command = command.replace(place, "/none")
        command = command.replace("/usr/lib64/sa", str(tmp_path))
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.splitlines()

    said = said_to(Serving(packages=("of-another-kind",)).look())
    (lacks,) = (line for line in said if line.startswith("missing="))
    assert "sadc" not in lacks
    assert "absent=" in said
    assert said_to(Access("h", "/k", home="/opt/ntier").as_root("sadc -V")) == [f"{tmp_path}/sadc -V"]
    assert wrong(Serving(), missing="sadc zstd ", apt="") == "lacks sadc, zstd; install there sysstat zstd"


def test_what_lies_in_the_home_of_a_client_does_not_change_how_the_system_is_asked(tmp_path, monkeypatch):
    """Python looks for modules where it is called."""
    (tmp_path / "json.py").write_text("raise SystemExit('not the one')\n")
    monkeypatch.chdir(tmp_path)

    def call(_node: object, command: str, **options: Any) -> Done:
        return Runner().run(["sh", "-c", command], input=options["input"], check=False)

    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    lab = SimpleNamespace(nodes=SimpleNamespace(clients=[SimpleNamespace(name="client1")], call=call))
    asked = [{"name": "price", "url": url, "status": 200, "contains": "x"}]
    with pytest.raises(WorkError, match=r"verify from client1: price: http://127.0.0.1:\d+/: .*refused"):
        existing.verify(lab, asked)


def test_a_program_with_a_long_name_is_known_by_what_the_kernel_keeps_of_it():
    service, told = ("prometheus-node-exporter",), "init prometheus-node sshd"
    assert wrong(Serving(services=service), programs=told) == ""
    assert wrong(Serving(services=service), programs="init prometheus") == f"{service[0]} does not run"
    said = {"uid": "0", "os": "Debian", "distribution": "debian", "release": "13", "init": "systemd", "python": "p",
            "owner": "", "databases": "", "programs": told, "listening": ""}  # fmt: skip
    assert "prometheus-node-exporter runs" in Strangers(service, set(), ()).wrong(said, OURS)


def test_a_folder_or_a_deployment_of_somebody_else_is_left_alone():
    assert wrong(Serving(), folder="/opt/ntier", owner=OURS) == ""
    assert wrong(Serving(), folder="/opt/ntier").startswith("has a folder /opt/ntier that is not ours: not touched")
    assert wrong(Serving(), owner="other-1").startswith("belongs to another deployment (other-1)")
    assert wrong(Serving(), uid="1000") == "commands run there as uid 1000, not as root"


def test_each_machine_that_is_wrong_has_a_line(shop, tmp_path, monkeypatch, capsys):
    """Nothing listens where SSH is said to be."""
    (tmp_path / "known").touch()
    (tmp_path / "state/hosts").mkdir(parents=True)
    hosts = [f"- {{address: 10.10.1.{i}, ssh: 127.0.0.1, port: {i}}}" for i in (1, 2, 3)]
    lab = tmp_path / "lab.yaml"
    lab.write_text(f"known_hosts: {tmp_path / 'known'}\nhosts:\n" + "\n".join(hosts) + "\n")
    target = Hosts(Runner(), Paths(shop, tmp_path / "state", tmp_path, "hosts"), lab)
    monkeypatch.setattr("ntier_harness.targets.hosts.check_place", lambda _: None)  # a test's folder is long
    with pytest.raises(RequestError) as error:
        target.up(request_of(shop), tmp_path / "log")
    assert [line.split(":")[1] for line in error.value.args] == [
        f" {name} (root@127.0.0.1)" for name in ("web1", "prices1", "client1")
    ]
    assert not (tmp_path / "state/hosts/nodes.json").exists()

    def refuse(**_: object) -> None:
        raise error.value

    monkeypatch.setattr("ntier_harness.cli.cli.main", refuse)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


# ---- what comes to a machine -----------------------------------------------------------------------------------------


def unpacked(checkout: Path, tier: str, into: Path) -> Path:
    data = existing.archive(existing.files(Paths(checkout, into, into), request_of(checkout), tier))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        tar.extractall(into / tier, filter="data")
    return into / tier


def test_the_programs_that_come_can_be_run_from_their_folder(shop, tmp_path):
    home = unpacked(shop, "web", tmp_path)
    access = Access("web1", "none", home=str(home))
    environment = {**os.environ, "NTIER_RUN": str(tmp_path / "run")}
    done = subprocess.run(
        ["sh", "-c", access.as_root("ntier-node reset && ntier-node facts")],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["services"] == []
    assert sorted(p.name for p in (home / "etc/collectors.d").iterdir()) == ["procstat"]
    assert not (home / "bin/run-driver").exists()


def test_the_client_gets_the_driver_where_the_harness_calls_it(shop, tmp_path):
    home = unpacked(shop, "client", tmp_path)
    assert os.access(home / "bin/run-driver", os.X_OK)
    assert {p.name for p in (home / "load").iterdir()} == {"http_driver.py", "requests.csv"}
    assert existing.driver_program(request_of(shop)) == "python3"


PROGRAMS = [
    *(ROOT / "ansible/roles/monitor/files/lib").glob("*.py"),
    ROOT / "ansible/roles/monitor/files/ntier-node",
    ROOT / "harness/src/ntier_harness/sampler.py",
    ROOT / "workloads/bin/run-driver",
    ROOT / "workloads/bin/run-jmeter",
    ROOT / "drivers/http_driver.py",
]


def test_what_comes_runs_on_the_oldest_python_that_a_machine_may_have(shop):
    """A machine with an older one than ours is accepted, so nothing newer may be in what it gets."""
    paths, spec = Paths(shop, shop, shop), request_of(shop)
    came = [file for tier in ("web", "client") for _, file, _ in existing.files(paths, spec, tier)]
    texts = {file: file.read_text() for file in came if isinstance(file, Path)}
    brought = [file for file, text in texts.items() if file.suffix == ".py" or "python" in text.split("\n")[0]]
    assert {file.name for file in brought} <= {file.name for file in PROGRAMS}
    for file in PROGRAMS:
        tree = ast.parse(file.read_text(), str(file), feature_version=PYTHON_LEAST)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
        new = [node.lineno for node in calls if node.func.id == "zip" and node.keywords]  # `strict` came with 3.10
        assert not new, f"{file}: zip with a keyword in lines {new}"


def test_a_plan_comes_with_the_jmeter_that_set_up_made(shop, tmp_path):
    file = shop / "systems/shop/system.yaml"
    text = file.read_text()
    begin, end = text.index("    kind: command"), text.index("  model: closed")
    jmeter = "    kind: jmeter\n    plan: shop.jmx\n    own_thread_group: true\n"
    (shop / "systems/shop/shop.jmx").touch()
    (shop / "build/jmeter/bin").mkdir(parents=True)
    (shop / "build/jmeter/bin/ApacheJMeter.jar").touch()
    file.write_text(text[:begin] + jmeter + text[end:])
    try:
        home, spec = unpacked(shop, "client", tmp_path), request_of(shop)
    finally:
        file.write_text(text)
    assert os.access(home / "bin/run-jmeter", os.X_OK)
    assert (home / "jmeter/bin/ApacheJMeter.jar").exists()
    assert [p.name for p in (home / "load").iterdir()] == ["shop.jmx"]
    assert existing.driver_program(spec) == "java"
    assert existing.make_parts(Paths(shop, tmp_path, tmp_path), spec)[-1] == "workloads"


def test_units_and_the_command_that_resets_are_told_to_the_node(shop, tmp_path):
    file = shop / "systems/shop/system.yaml"
    text = file.read_text()
    more = "reset:\n- {tier: web, command: touch /tmp/none}\n- {tier: web, command: touch /tmp/nothing}\n"
    file.write_text(text.replace("ports: [80],", "ports: [80], units: [nginx.service],") + more)
    try:
        home = unpacked(shop, "web", tmp_path)
    finally:
        file.write_text(text)
    assert (home / "etc/services.d/system").read_text() == "nginx.service\n"
    assert re.findall("touch .*", (home / "etc/reset.d/90-system").read_text()) == [
        "touch /tmp/none", "touch /tmp/nothing",
    ]  # fmt: skip


@pytest.mark.parametrize("whose", [OURS, "other-1"])
def test_what_came_goes_again_if_it_is_ours(tmp_path, whose):
    home, remote = tmp_path / "opt", tmp_path / "run"
    command = existing.leave(OURS).replace("/opt/ntier", str(home)).replace("/run/ntier", str(remote))
    claim = existing.claim(whose, existing.OWNER_FILE, f"{tmp_path}/none").replace("/opt/ntier", str(home))
    remote.mkdir()
    subprocess.run(["sh", "-c", claim], check=True)
    subprocess.run(["sh", "-c", command], check=True)
    assert home.exists() == remote.exists() == (whose != OURS)


def test_what_came_goes_by_programs_that_every_machine_has(tmp_path):
    """Small images have no `find`, which is in a package of its own."""
    home, remote, bin_ = (tmp_path / name for name in ("opt", "run", "bin"))
    for folder in (home / "lib", home / "etc", remote, bin_):
        folder.mkdir(parents=True)
    (home / "owner").write_text(OURS)
    for name in ("cat", "flock", "rm"):
        (bin_ / name).symlink_to(shutil.which(name))
    command = existing.leave(OURS).replace("/opt/ntier", str(home)).replace("/run/ntier", str(remote))
    done = subprocess.run([shutil.which("sh"), "-c", command], env={"PATH": str(bin_)}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not home.exists()
    assert not remote.exists()


def test_a_folder_of_which_something_stays_is_still_known_as_ours(tmp_path):
    """As after a restart in the middle, or on a disk with faults; the same command then goes on."""
    home, remote, bin_ = (tmp_path / name for name in ("opt", "run", "bin"))
    for folder in (home / "lib", home / "bin", remote, bin_):
        folder.mkdir(parents=True)
    (home / "owner").write_text(OURS)
    (home / "lib/sampler.py").touch()
    (bin_ / "rm").write_text(f"""#!/bin/sh
for place; do case $place in -*) ;; *) find "$place" -depth ! -path "{home}/lib*" -delete 2>/dev/null;; esac; done
exit 1
""")
    (bin_ / "rm").chmod(0o755)
    command = existing.leave(OURS).replace("/opt/ntier", str(home)).replace("/run/ntier", str(remote))
    cut_short = {**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"}
    assert subprocess.run(["sh", "-c", command], env=cut_short, capture_output=True).returncode
    assert (home / "owner").read_text() == OURS
    subprocess.run(["sh", "-c", command], check=True)
    assert not home.exists()
    assert not remote.exists()


def claims(whose: str, file: str, other: str = "/none") -> subprocess.Popen[str]:
    command = ["sh", "-c", existing.claim(whose, file, other)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def owner_after(claim: subprocess.Popen[str]) -> str:
    out, err = claim.communicate()
    assert claim.returncode == 0, err
    return out.strip()


def test_of_two_who_found_a_machine_free_one_gets_it(tmp_path):
    file = f"{tmp_path}/ntier/owner"
    assert owner_after(claims("first-1", file)) == "first-1"
    assert owner_after(claims("second's 2", file)) == "first-1"
    assert owner_after(claims("first-1", file)) == "first-1"
    (tmp_path / "ntier" / "owner").write_text("")  # as after a crash while it was written
    assert owner_after(claims("second's 2", file)) == "second's 2"
    assert [file.name for file in (tmp_path / "ntier").iterdir()] == ["owner"]


def test_of_two_who_find_an_empty_owner_file_at_once_one_gets_the_machine(tmp_path):
    """As a full disk leaves it. The first one is held where it has seen that the file is empty."""
    folder, bin_ = tmp_path / "ntier", tmp_path / "bin"
    folder.mkdir()
    bin_.mkdir()
    (folder / "owner").write_text("")
    held = bin_ / "held"
    os.mkfifo(held)
    for name in ("rm", "mv"):  # what takes the place of the empty file
        (bin_ / name).write_text(
            f'#!/bin/sh\n[ ! -p {held} ] || {{ echo >{bin_}/there; cat {held}; }}\n/bin/{name} "$@"\n'
        )
        (bin_ / name).chmod(0o755)
    command = ["sh", "-c", existing.claim("first-1", f"{folder}/owner", "/none")]
    path = {"PATH": f"{bin_}:{os.environ['PATH']}"}
    first = subprocess.Popen(command, env=os.environ | path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (bin_ / "there").exists():
        time.sleep(0.01)
    second = claims("second-2", f"{folder}/owner")
    with contextlib.suppress(subprocess.TimeoutExpired):
        second.wait(0.5)
    gate = held.open("w")
    held.unlink()
    gate.close()
    told = {owner_after(first), owner_after(second)}
    assert told == {(folder / "owner").read_text().strip()}


def test_of_two_kinds_of_deployment_one_gets_the_machine(tmp_path):
    deployed, running = f"{tmp_path}/etc/owner", f"{tmp_path}/opt/owner"
    assert owner_after(claims("first-1", deployed, running)) == "first-1"
    assert owner_after(claims("second-2", running, deployed)) == "first-1"
    assert not (tmp_path / "opt").exists()


@pytest.mark.parametrize("before", [False, True])
def test_a_full_disk_is_said_and_leaves_no_claim(tmp_path, before):
    """A folder of ours without an owner's name would be taken for somebody else's the next time; with an empty file it
    is nobody's."""
    if before:
        (tmp_path / "ntier").mkdir()
        (tmp_path / "ntier/owner").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tee").write_text("#!/bin/sh\n: >$1\nexec /usr/bin/tee /dev/full\n")
    (tmp_path / "bin" / "tee").chmod(0o755)
    command = existing.claim("first-1", f"{tmp_path}/ntier/owner", "/none")
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], env=os.environ | path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith("No space left on device")
    assert [p.name for p in tmp_path.glob("ntier/*")] == ["owner"] * before
    assert (tmp_path / "ntier").exists() == before


def test_a_request_with_another_answer_says_which():
    """The program that asks, against a web server here."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/there" else 404)
            self.end_headers()
            self.wfile.write(b"price 5")

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"

    def ask(**wanted: object) -> str:
        asked = json.dumps([{"name": "price of web1", "url": f"{base}/there", "status": 200, "contains": ""} | wanted])
        done = subprocess.run(["python3", "-c", existing.ASK], input=asked, capture_output=True, text=True, check=False)
        return done.stderr.strip()

    try:
        assert ask(contains="price [0-9]") == ""
        assert ask(url=f"{base}/none", status=404) == ""
        assert ask(url=f"{base}/none").endswith("/none: status 404, expected 200")
        assert ask(contains="offer") == f"price of web1: {base}/there: 'offer' is not in the answer 'price 5'"
        assert "refused" in ask(url="http://127.0.0.1:1/")
    finally:
        server.shutdown()
