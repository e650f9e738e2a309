"""Target hosts on bare machines that the harness knows only by an inventory file and a key: from nothing to a report,
and back. The machines are containers of the base image, beside the local target's nodes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
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
    the_machines = Machines(folder)
    try:
        the_machines.create()
        yield the_machines
    finally:
        the_machines.delete()
        shutil.rmtree(folder)


def everywhere(command: str) -> list[str]:
    return [on_node(name, command).strip() for name in NAMES]


REQUEST = ("--topo", "1/1/1/1P", "--data", "tiny")
WALL = (
    "table inet wall { chain input { type filter hook input priority 0; "
    f"ip saddr {NETWORK}.3 tcp dport 5432 drop; }}; }}"
)
"""The owner's packet filter on the fourth machine, which drops what the third one asks of a database."""


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("too few", "its 4 hosts cannot become the 5 nodes of 1/1/1/1P and its client: web needs 1"),
        ("unreachable", f"(root@{NETWORK}.99): cannot be reached"),
        ("key", "/key; put its public key into ~"),
        ("unknown host key", "its host key is not in"),
        ("changed host key", "its host key is not the one in"),
        ("user", "does not let stranger in with"),
        ("service", "something listens on port 80, not started by this project"),
        ("wall", f"middleware1 (root@{NETWORK}.3) does not reach db1, {NETWORK}.4:5432: timed out"),
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
        "wall": {},
    }
    file = machines.write(**changes[wrong])
    if wrong == "service":
        on_node(
            NAMES[0],
            "systemd-run --quiet --unit foreign python3 -m http.server 80"
            " && timeout 30 sh -c 'until ss -Htln sport = :80 | grep -q .; do sleep 0.2; done'",
        )
    if wrong == "wall":
        on_node(NAMES[3], f"printf '{WALL}' | nft --file -")
    try:
        done = machines.ntier("up", "--hosts", str(file), *REQUEST)
    finally:
        on_node(NAMES[0], "systemctl stop foreign 2>/dev/null")
        on_node(NAMES[3], "nft delete table inet wall 2>/dev/null")
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()  # one for each machine that is unfit
    assert lines
    assert [line for line in lines if says not in line or not line.startswith("error: hosts: ")] == []
    assert everywhere("ls /etc/ntier 2>/dev/null") == [""] * len(NAMES)


# What the owner has on every machine, and what runs at none of our ports.
OWNED = """
set -e
install -d /opt/jmeter /srv/board; echo mine >/opt/jmeter/plan.jmx; echo mine >/srv/board/data
printf '10.9.9.9 printer' >>/etc/hosts
printf 'table inet owner {\\n chain input { type filter hook input priority 10; }\\n}\\n' >/etc/owner.nft
nft --file /etc/owner.nft
printf '[Timer]\\nOnCalendar=daily\\n' >/etc/systemd/system/logrotate.timer
cd /etc/systemd/system
printf '[Service]\\nExecStart=/usr/bin/python3 -m http.server --directory /srv/board 9100\\n' >board.service
systemctl unmask fstrim.timer; systemctl daemon-reload; systemctl start board
"""
APACHE = """
set -e
apt-get update -qq; apt-get install -qq --no-install-recommends apache2 >/dev/null
systemctl disable --now apache2
echo '# mine' >>/etc/apache2/apache2.conf; chmod 0640 /etc/apache2/apache2.conf; echo mine >/var/www/html/index.html
"""
TOMCAT = """
set -e
install -d /usr/share/man/man1 # slim images leave it out, and Java's packages need it
apt-get update -qq; apt-get install -qq --no-install-recommends tomcat10 >/dev/null
systemctl stop tomcat10
echo '<!-- mine -->' >>/etc/tomcat10/server.xml; echo '# mine' >>/etc/default/tomcat10
echo mine >/var/lib/tomcat10/webapps/ROOT/index.html
"""
# A line per file, folder and link: mode, owner, content. Left out: notes of the package manager and of systemd, caches
# made from the rest, and the copies that the tools for accounts keep.
TREE = r"""
import hashlib, os, re
LEFT_OUT = re.compile(
    "/etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|/etc/(.pwd.lock|ld.so.cache|.updated)$"
    "|/var/lib/(apt|dpkg|systemd|ucf|private|dbus)$"
)
for root in ("/etc", "/opt", "/usr/local", "/var/lib", "/var/www", "/srv", "/root", "/home"):
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not LEFT_OUT.search(f"{folder}/{n}"))
        files += [n for n in names if os.path.islink(f"{folder}/{n}")]
        for path in [folder, *(f"{folder}/{n}" for n in sorted(files))]:
            if LEFT_OUT.search(path):
                continue
            s = os.lstat(path)
            what = os.readlink(path) if os.path.islink(path) else "-"
            if os.path.isfile(path) and what == "-":
                what = hashlib.sha256(open(path, "rb").read()).hexdigest()
            print(path, oct(s.st_mode), s.st_uid, s.st_gid, what)
"""
STATE = """
nft list tables; systemctl list-unit-files --no-legend | grep -v -e '[.]scope ' -e '^user' -e '^session'
systemctl list-units --no-legend --plain --state=active '*.timer' '*.service' | awk '{print $1}' |
  grep -v -e ^user -e ^systemd- -e ^session -e ^apt- -e ^dpkg-
getent passwd; getent group; dpkg --get-selections | grep -v deinstall
sysctl net.core.somaxconn net.ipv4.tcp_max_syn_backlog net.ipv4.ip_local_port_range net.ipv4.tcp_tw_reuse
"""


def machines_as_they_are() -> dict[str, set[str]]:
    """Files and state of every machine, as lines."""
    look = f"python3 - <<'END'\n{TREE}\nEND\n{STATE}"
    return {name: set(text.splitlines()) for name, text in zip(NAMES, everywhere(look), strict=True)}


@pytest.fixture(scope="module")
def owned(machines: Machines) -> Machines:
    """With services of their owner's: one that runs, Apache and Tomcat that are installed and do not."""
    scripts = dict.fromkeys(NAMES, OWNED)
    scripts[NAMES[0]] += APACHE
    scripts[NAMES[APP - 1]] += TOMCAT
    for name, script in scripts.items():
        subprocess.run([*INCUS, "exec", name, "--", "sh", "-c", script], check=True, timeout=300)
    return machines


@pytest.mark.faults  # five machines with nothing of ours on them: ten minutes (make test-faults)
def test_from_bare_machines_to_a_report_and_back(owned: Machines, tmp_path: Path) -> None:
    before = machines_as_they_are()
    sweep = ["sweep", "--hosts", str(owned.write()), *REQUEST, "--users", "200", "--phases", "smoke"]
    done = owned.ntier(*sweep, "--results", str(tmp_path))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert f"web1 is {NETWORK}.1" in done.stderr
    check_trial(tmp_path)
    assert everywhere("systemctl is-active board") == ["active"] * 5

    again = owned.ntier("deploy")  # as up was told
    assert again.returncode == 0, again.stderr
    assert "nothing to do" in again.stderr
    status = json.loads(owned.ntier("status", "--json").stdout)
    assert set(status["instances"].values()) == {"answers"}
    assert [n["cores"] for n in status["nodes"]] == [os.cpu_count()] * 5
    other = owned.ntier("up", "--hosts", str(owned.file), *REQUEST, state=owned.folder / "other")
    assert other.returncode == 2
    assert "belongs to another deployment" in other.stderr

    down = owned.ntier("down")
    assert down.returncode == 0, down.stderr
    assert "freed app1, client1, db1, middleware1, web1" in down.stderr
    check_as_before(before)


def check_as_before(before: dict[str, set[str]]) -> None:
    after = machines_as_they_are()
    differing = {name: sorted(before[name] ^ after[name]) for name in NAMES if before[name] != after[name]}
    assert not differing, json.dumps(differing, indent=1)[:6000]


@pytest.mark.faults
def test_a_filter_that_locks_us_out_goes_by_itself(owned: Machines) -> None:
    """SSH comes through a program of the owner's on port 2200, of which sshd knows nothing."""
    proxy = "--socket-property=ListenStream=2200 /usr/lib/systemd/systemd-socket-proxyd 127.0.0.1:22"
    on_node(NAMES[0], f"systemd-run --quiet --unit=forward {proxy}")
    key = next(line for line in owned.known_hosts.read_text().splitlines() if line.startswith(f"{NETWORK}.1 "))
    with owned.known_hosts.open("a") as file:
        file.write(f"[{NETWORK}.1]:2200 {key.split(' ', 1)[1]}\n")
    hosts = yaml.safe_load(owned.write().read_text())["hosts"]
    hosts[0] |= {"port": 2200, "tiers": ["web"]}
    with socket.create_connection((f"{NETWORK}.1", 2200), timeout=10):
        pass  # the first connection starts the owner's program, which then stays
    before = machines_as_they_are()
    assert owned.ntier("up", "--hosts", str(owned.write(hosts=hosts)), *REQUEST).returncode == 0
    locked_out = owned.ntier("deploy")
    assert locked_out.returncode == 1
    assert "web1: " in locked_out.stderr
    end = time.monotonic() + 90
    while "ntier" in on_node(NAMES[0], "nft list tables"):
        assert time.monotonic() < end, "the filter is still in force"
        time.sleep(1)
    assert owned.ntier("down").returncode == 0
    check_as_before(before)


@pytest.mark.faults
def test_databases_of_the_owner_are_not_touched(owned: Machines) -> None:
    everywhere("install -d /var/lib/postgresql/17/main; echo 17 >/var/lib/postgresql/17/main/PG_VERSION")
    try:
        done = owned.ntier("up", "--hosts", str(owned.write()), *REQUEST)
        assert done.returncode == 2
        assert "db1" in done.stderr
        assert "holds databases that are not ours" in done.stderr
    finally:
        everywhere("rm -r /var/lib/postgresql")


@pytest.mark.faults
def test_a_campaign_on_hosts(machines: Machines, tmp_path: Path) -> None:
    """Its spec alone says where: set-up makes no images, machines are freed and set up for each sweep."""
    spec = tmp_path / "on-hosts.yaml"
    sweeps = [{"topology": "1/1/1/1P", "middleware": name} for name in ("shardingsphere", "pgpool")]
    request = {"data": "tiny", "users": [100, 200], "phases": "smoke", "include": sweeps}
    machines.write()
    hosts = os.path.relpath(machines.file, tmp_path)
    spec.write_text(yaml.safe_dump({"name": "on-hosts", "target": "hosts", "hosts": hosts} | request))
    environment = machines.environment | {"NTIER_STATE": str(machines.folder / "campaign")}
    argv = [NTIER, "campaign", "--spec", str(spec), "--results", str(tmp_path / "results")]
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=3 * DEADLINE_S)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    manifests = [Manifest.read(file.parent) for file in (tmp_path / "results/raw").glob("*/*/manifest.json")]
    assert sorted((m.middleware, m.users_real) for m in manifests if m.valid) == [
        (name, users) for name in ("pgpool", "shardingsphere") for users in (100, 200)
    ]
    assert {m.target for m in manifests} == {"hosts"}
    down = subprocess.run(
        [NTIER, "down", "--target", "hosts"], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert down.returncode == 0, down.stderr
    assert everywhere("ls -d /etc/ntier 2>/dev/null") == [""] * len(NAMES)


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
