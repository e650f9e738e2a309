"""The page "A system of your own that already runs", done as it says: its files and commands, on machines with services
that are not ours. The machines are containers of the base image, which get the page's addresses beside their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ntier_analysis.contracts.manifest import Manifest

from ..page import copy_checkout, files_shown
from .conftest import INCUS, NTIER, check_sound, on_node, sound
from .test_hosts import NODE_SH, STATE, TREE

pytestmark = [pytest.mark.nodes, pytest.mark.alone]

ROOT = Path(__file__).resolve().parents[3]
MACHINES = {f"build-own-{i}": (f"198.18.192.{i}", f"10.10.1.{i}") for i in (1, 2, 3)}
WEB, PRICES, CLIENT = MACHINES
SERVICE = """
import sys, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        if len(sys.argv) > 2:
            body = urllib.request.urlopen(sys.argv[2] + self.path).read()
        else:
            end = time.thread_time() + 0.01
            while time.thread_time() < end:
                pass
            body = b"price of " + self.path.encode() + b": 5"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
ThreadingHTTPServer(("", int(sys.argv[1])), Page).serve_forever()
"""


class Owner:
    """Three machines of somebody's, the page's files in a checkout, and the commands of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkout, self.home = folder, folder / "checkout", folder / "home"
        self.environment = {
            **os.environ, "NTIER_STATE": str(folder), "NTIER_NODES": str(folder / "nodes"), "HOME": str(self.home),
        }  # fmt: skip

    def create(self) -> None:
        for place in (self.folder / "ssh", self.home / ".ssh"):
            place.mkdir(parents=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "ssh/id_ed25519"], check=True
        )
        makers = [
            subprocess.Popen([NODE_SH, "create", name, "base-trixie", address], env=self.environment)
            for name, (address, _) in MACHINES.items()
        ]
        assert [maker.wait(120) for maker in makers] == [0] * len(MACHINES)
        subprocess.run(["ip", "address", "replace", "10.10.1.254/24", "dev", "ntierbr0"], check=True)
        known = []
        for name, (_, address) in MACHINES.items():
            on_node(name, f"ip address add {address}/24 dev eth0")
            key = (self.folder / "nodes" / name / "known_hosts").read_text().split()[1:3]
            known.append(f"{address} {' '.join(key)}\n")
        (self.home / ".ssh/known_hosts").write_text("".join(known))
        shutil.copy(self.folder / "ssh/id_ed25519", self.home / ".ssh/id_ed25519")
        copy_checkout(self.checkout)
        for name, text in files_shown().items():
            file = self.checkout / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def apt(self, name: str, command: str) -> None:
        command = f"apt-get update -qq && apt-get {command} -qq --no-install-recommends sysstat >/dev/null"
        subprocess.run([*INCUS, "exec", name, "--", "sh", "-c", command], check=True, timeout=300)

    def serve(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [*INCUS, "exec", name, "--", "sh", "-c", "cat >/srv/service.py"], input=SERVICE, text=True, check=True
        )
        on_node(name, f"systemd-run --quiet --unit=shop python3 /srv/service.py {' '.join(arguments)}")
        listens = f"ss -Htln 'sport = :{arguments[0]}' | grep -q . && echo yes"
        end = time.monotonic() + 30
        while on_node(name, listens).strip() != "yes":
            assert time.monotonic() < end, on_node(name, "journalctl --no-pager -n 20 -u shop")
            time.sleep(0.2)

    def ntier(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = self.environment | {"NTIER_STATE": str(self.folder / "state"), "NTIER_ROOT": str(self.checkout)}
        argv = [NTIER, *arguments, "--target", "hosts"]
        return subprocess.run(
            argv, env=environment, cwd=self.checkout, capture_output=True, text=True, timeout=900, check=False
        )

    def delete(self) -> None:
        for name in MACHINES:
            subprocess.run([NODE_SH, "delete", name], env=self.environment, check=True)
        subprocess.run(["ip", "address", "del", "10.10.1.254/24", "dev", "ntierbr0"], check=False)


@pytest.fixture(scope="module")
def owner() -> Iterator[Owner]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make the machines")
    folder = Path(tempfile.mkdtemp(prefix="nt-"))  # short: the path of an SSH connection's socket has 108 bytes
    the_owner = Owner(folder)
    try:
        the_owner.create()
        yield the_owner
    finally:
        the_owner.delete()
        shutil.rmtree(folder)


REQUEST = ("--system", "shop", "--hosts", "lab.yaml", "--topo", "1/1")


def looks() -> dict[str, set[str]]:
    """Files, packages, units, accounts and settings of every machine, as lines; not what Ntier says that it makes."""
    look = f"python3 - <<'END'\n{TREE}\nEND\n{STATE}"
    return {
        name: {line for line in on_node(name, look).splitlines() if not line.startswith("/opt/ntier")}
        for name in MACHINES
    }


def test_the_page_leads_to_a_report_and_leaves_nothing(owner: Owner) -> None:
    owner.apt(PRICES, "remove")  # the base image has all that the page asks for
    owner.serve(WEB, "80", "http://10.10.1.2:8000")
    bare = owner.ntier("up", *REQUEST)
    assert bare.returncode == 2, bare.stderr
    assert bare.stderr.count("\n") == 1, bare.stderr
    line = bare.stderr
    assert line.startswith("error: hosts: prices1 (root@10.10.1.2): lacks sadc, sadf; run there: apt"), line
    assert "nothing listens on port 8000" in line

    owner.apt(PRICES, "install")
    owner.serve(PRICES, "8000")
    before = looks()
    request = ("sweep", *REQUEST, "--users", "5,20", "--phases", "5/20/1", "--attempts")
    check_sound(lambda attempts: owner.ntier(*request, str(attempts)), owner.checkout / "results")
    during = looks()
    changed = {name: sorted(before[name] ^ during[name]) for name in MACHINES if before[name] != during[name]}
    assert not changed, json.dumps(changed, indent=1)[:6000]
    check_trials(owner.checkout / "results")

    down = owner.ntier("down")
    assert down.returncode == 0, down.stderr
    assert "freed client1, prices1, web1" in down.stderr
    assert [on_node(name, "ls -d /opt/ntier /run/ntier /etc/ntier 2>/dev/null") for name in MACHINES] == [""] * 3
    assert [on_node(name, "systemctl is-active shop").strip() for name in (WEB, PRICES)] == ["active"] * 2


def check_trials(results: Path) -> None:
    """Both loads have a trial, and the report says something of them."""
    files = (results / "raw").glob("shop.1-1.visits.5-20-1-hosts/*/manifest.json")
    trials = [m for m in (Manifest.read(file.parent) for file in files) if sound(m)]
    assert {m.users for m in trials} == {5, 20}
    assert all(set(m.collectors) == {"web1", "prices1", "client1"} for m in trials)
    report = json.loads((results / "reports" / trials[0].sweep / "report.json").read_text())
    assert report["sentence"]
