"""Target hosts on bare machines that the harness knows only by an inventory file and a key: from nothing to a report,
and back. The machines are containers of the base image, beside the local target's nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ntier_analysis.contracts.manifest import Manifest

from .conftest import DEADLINE_S, INCUS, NTIER, on_node

pytestmark = pytest.mark.nodes

ROOT = Path(__file__).resolve().parents[3]
NODE_SH = ROOT / "terraform/targets/local/node.sh"
NETWORK = "198.18.191"
NAMES = [f"build-host-{i}" for i in range(1, 6)]  # names of image building, which the local target leaves alone
APP = 2  # this one lets in a user with sudo, at another port
USER = """
set -e
apt-get update -qq && apt-get install -qq --no-install-recommends sudo >/dev/null
useradd --create-home --shell /bin/sh tester
install -d -o tester -m 0700 /home/tester/.ssh
install -o tester -m 0600 /root/.ssh/authorized_keys /home/tester/.ssh/
echo 'tester ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/tester
printf 'Port 2222\\nPermitRootLogin no\\n' >/etc/ssh/sshd_config.d/00-test.conf
systemctl restart ssh
"""


class Machines:
    """Five bare machines, their keys, and the harness with a state of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "lab.yaml"
        self.key, self.known_hosts = folder / "ssh/id_ed25519", folder / "known_hosts"
        self.environment = {**os.environ, "NTIER_STATE": str(folder), "NTIER_NODES": str(folder / "nodes")}

    def create(self) -> None:
        self.key.parent.mkdir()
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        makers = [
            subprocess.Popen([NODE_SH, "create", name, "base-trixie", f"{NETWORK}.{i}"], env=self.environment)
            for i, name in enumerate(NAMES, 1)
        ]
        assert [maker.wait(120) for maker in makers] == [0] * len(NAMES)
        subprocess.run([*INCUS, "exec", NAMES[APP - 1], "--", "sh", "-c", USER], check=True, timeout=180)
        lines = []
        for i, name in enumerate(NAMES, 1):
            key = " ".join((self.folder / "nodes" / name / "known_hosts").read_text().split()[1:3])
            lines.append(f"[{NETWORK}.{i}]:2222 {key}\n" if i == APP else f"{NETWORK}.{i} {key}\n")
        self.known_hosts.write_text("".join(lines))
        self.write()

    def write(self, **changes: object) -> Path:
        """The inventory; `changes`: of the whole file (user, key_file, known_hosts, hosts)."""
        hosts: list[dict[str, object]] = [{"address": f"{NETWORK}.{i}"} for i in range(1, 6)]
        hosts[APP - 1] |= {"tiers": ["app"], "user": "tester", "port": 2222}
        whole = {"known_hosts": str(self.known_hosts), "key_file": str(self.key), "hosts": hosts}
        self.file.write_text(yaml.safe_dump(whole | changes))
        return self.file

    def ntier(self, *arguments: str, state: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = self.environment | {"NTIER_STATE": str(state or self.folder / "state")}
        argv = [NTIER, *arguments, "--target", "hosts"]
        return subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S)

    def delete(self) -> None:
        for name in NAMES:
            subprocess.run([NODE_SH, "delete", name], env=self.environment, check=True)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    if os.geteuid() != 0:
        pytest.skip("needs root to make the machines")
    folder = Path(tempfile.mkdtemp(prefix="nt-"))  # short: the path of an SSH connection's socket has 108 bytes
    found = Machines(folder)
    try:
        found.create()
        yield found
    finally:
        found.delete()
        shutil.rmtree(folder)


def everywhere(command: str) -> list[str]:
    return [on_node(name, command).strip() for name in NAMES]


REQUEST = ("--topo", "1/1/1/1P", "--data", "tiny")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("too few", "its 4 hosts cannot become the 5 nodes of 1/1/1/1P and its client: web needs 1"),
        ("unreachable", f"(root@{NETWORK}.99): cannot be reached"),
        ("key", "does not let root in with"),
        ("unknown host key", "its host key is not in"),
        ("changed host key", "its host key is not the one in"),
        ("user", "does not let stranger in with"),
        ("service", "something listens on port 80, not started by this project"),
    ],
)
def test_a_wrong_inventory_touches_nothing(machines: Machines, tmp_path: Path, wrong: str, says: str) -> None:
    hosts = yaml.safe_load(machines.write().read_text())["hosts"]
    known = machines.known_hosts.read_text().splitlines()
    (tmp_path / "none").touch()
    (tmp_path / "changed").write_text("\n".join([f"{NETWORK}.1 {known[2].split(' ', 1)[1]}", *known[1:]]) + "\n")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    changes: dict[str, dict[str, object]] = {
        "too few": {"hosts": hosts[:4]},
        "unreachable": {"hosts": [{"address": f"{NETWORK}.99"}, *hosts[1:]]},
        "key": {"key_file": str(tmp_path / "key")},
        "unknown host key": {"known_hosts": str(tmp_path / "none")},
        "changed host key": {"known_hosts": str(tmp_path / "changed")},
        "user": {"user": "stranger"},
        "service": {},
    }
    file = machines.write(**changes[wrong])
    if wrong == "service":
        on_node(NAMES[0], "systemd-run --quiet --unit foreign python3 -m http.server 80 && sleep 1")
    try:
        done = machines.ntier("up", "--hosts", str(file), *REQUEST)
    finally:
        on_node(NAMES[0], "systemctl stop foreign 2>/dev/null")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert everywhere("ls /etc/ntier 2>/dev/null") == [""] * len(NAMES)


@pytest.mark.faults  # five machines with nothing on them: ten minutes (make test-faults)
def test_from_bare_machines_to_a_report_and_back(machines: Machines, tmp_path: Path) -> None:
    everywhere("systemctl unmask fstrim.timer")  # the others of ours are masked already: down must not unmask them
    timers = everywhere("systemctl list-unit-files --no-legend '*.timer' | sort")
    sweep = ["sweep", "--hosts", str(machines.write()), *REQUEST, "--users", "200", "--phases", "smoke"]
    done = machines.ntier(*sweep, "--results", str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert f"web1 is {NETWORK}.1" in done.stderr
    check_trial(tmp_path)

    again = machines.ntier("deploy")  # as up was told
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stderr
    status = json.loads(machines.ntier("status", "--json").stdout)
    assert set(status["instances"].values()) == {"answers"}
    assert [n["cores"] for n in status["nodes"]] == [os.cpu_count()] * 5
    other = machines.ntier("up", "--hosts", str(machines.file), *REQUEST, state=machines.folder / "other")
    assert other.returncode == 2
    assert "belongs to another deployment" in other.stderr

    down = machines.ntier("down")
    assert down.returncode == 0, down.stderr
    assert "freed app1, client1, db1, middleware1, web1" in down.stderr
    assert everywhere("ls -d /etc/ntier /opt/ntier /usr/local/lib/ntier 2>/dev/null") == [""] * 5
    assert everywhere("pgrep -l 'java|apache2|postgres|sadc'") == [""] * 5
    assert (
        everywhere("nft list tables; grep -c ntier /etc/hosts /etc/nftables.conf")
        == ["/etc/hosts:0\n/etc/nftables.conf:0"] * 5
    )
    assert everywhere("systemctl list-unit-files --no-legend '*.timer' | grep -c masked") == [
        str(t.count("masked")) for t in timers
    ]


def check_trial(results: Path) -> None:
    """A valid trial whose CPU was sampled on the nodes, and a report of it."""
    (file,) = (results / "raw").glob("1-1-1-1P.browse_only.shardingsphere.smoke-hosts-tiny/u00200.r01*/manifest.json")
    m = Manifest.read(file.parent)
    assert m.valid, m.validity and [c for c in m.validity.checks if c.outcome != "pass"]
    assert (m.target, m.scale, m.users_real) == ("hosts", 1.0, 200)
    assert "host" not in m.collectors
    assert all("procstat" in m.collectors[n.name] for n in m.nodes)
    checks = {c.id: c for c in m.validity.checks}
    assert all(checks[name].detail.startswith("not applicable") for name in ("H1", "H3", "H4"))
    assert checks["H2"].n > 5 * 15
    assert checks["G3"].value > 0
    assert (results / "reports" / m.sweep / "report.html").exists()
