"""The local target on real nodes, in an Incus project of the test's own, beside whatever else is deployed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness.request import make_spec
from ntier_harness.targets.terraform import common_variables

ROOT = Path(__file__).resolve().parents[2]
TERRAFORM = os.environ.get("TERRAFORM") or shutil.which("terraform") or "tofu"
PROJECT = "ntiertest"
BRIDGE = f"{PROJECT}br0"
UP_LIMIT_S = 60  # four nodes and a client, SSH included; 5 s on two idle cores

pytestmark = pytest.mark.nodes


def incus(*arguments: str, project: str | None = PROJECT) -> str:
    command = ["incus", *(["--project", project] if project else []), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout


def drop_project() -> None:
    if f"/1.0/projects/{PROJECT}" not in json.loads(incus("query", "/1.0/projects", project=None)):
        return
    for kind, columns, delete in (("list", "n", ["delete", "--force"]), ("image list", "F", ["image", "delete"])):
        for name in incus(*kind.split(), "--format", "csv", "--columns", columns).split():
            incus(*delete, name)
    incus("project", "delete", PROJECT, project=None)
    incus("network", "delete", BRIDGE, project=None)


def tiers(topology: str) -> str:
    """Terraform's variable for a topology of bare nodes and a client."""
    spec = make_spec({"topo": topology, "scale": "0.1", "users": "100"}, ROOT, 2)
    return json.dumps([tier | {"image": "base-trixie"} for tier in common_variables(spec)["tiers"]])


class Target:
    """`terraform` on the local target, with the test's own state, project and addresses."""

    def __init__(self, state: Path, root: Path = ROOT) -> None:
        self.state = state
        self.folder = root / "terraform/targets/local"
        self.environment = {
            **os.environ,
            "NTIER_STATE": str(state),
            "NTIER_NAME": PROJECT,
            "TF_DATA_DIR": str(state / "terraform"),
            "TF_VAR_state_dir": str(state),
            "NTIER_GATEWAY": "198.19.0.1",
            "TF_VAR_network": "198.19.0.0/16",
            "TF_VAR_scale": "0.1",
        }

    def command(self, verb: str, *arguments: str) -> list[str]:
        state = [] if verb == "init" else [f"-state={self.state}/local/terraform.tfstate"]
        return [TERRAFORM, f"-chdir={self.folder}", verb, *state, *arguments]

    def run(self, verb: str, *arguments: str) -> subprocess.CompletedProcess:
        command = [*self.command(verb, *arguments)]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def apply(self, topology: str) -> subprocess.CompletedProcess:
        return self.run("apply", "-input=false", "-no-color", "-auto-approve", f"-var=tiers={tiers(topology)}")

    def up(self, topology: str) -> list[Node]:
        done = self.apply(topology)
        assert done.returncode == 0, done.stdout + done.stderr
        return [Node.model_validate(n) for n in json.loads(self.run("output", "-json", "nodes").stdout)]

    def ssh(self, node: Node, *command: str) -> subprocess.CompletedProcess:
        options = {"UserKnownHostsFile": self.state / "local/known_hosts", "StrictHostKeyChecking": "yes"}
        options |= {"BatchMode": "yes", "IdentitiesOnly": "yes", "ConnectTimeout": 5}
        arguments = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]
        key = ["-i", str(self.state / "ssh/id_ed25519")]
        return subprocess.run(
            ["ssh", *key, *arguments, f"root@{node.address}", *command], capture_output=True, text=True
        )

    def pids(self) -> dict[str, int]:
        """Node -> process that is its PID 1: another one means another boot."""
        states = {i["name"]: i for i in json.loads(incus("list", "--format", "json"))}
        return {name: i["state"]["pid"] for name, i in states.items()}


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    drop_project()
    state = tmp_path_factory.mktemp("state")
    (state / "ssh").mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", state / "ssh/id_ed25519"], check=True)
    incus("project", "create", PROJECT, "--config", "features.networks=false", project=None)
    incus("network", "create", BRIDGE, "ipv4.address=198.19.0.1/16", "ipv6.address=none", project=None)
    profile = (ROOT / "setup/profile.yml").read_text().replace("ntierbr0", BRIDGE)
    edit = ["incus", "--project", PROJECT, "profile", "edit", "default"]
    subprocess.run(edit, input=profile, text=True, check=True)
    incus("image", "export", "base-trixie", str(state / "base"), project="ntier")  # projects do not share images
    files = [str(file) for file in (state / "base", state / "base.root") if file.exists()]
    incus("image", "import", *files, "--alias", "base-trixie")
    made = Target(state)
    assert made.run("init", "-input=false").returncode == 0
    yield made
    drop_project()


def test_nodes_answer_ssh_with_the_keys_we_made(target, measured):
    def up() -> tuple[list[Node], float]:
        target.run("destroy", "-input=false", "-auto-approve", f"-var=tiers={tiers('1/1/1/1M')}")
        begin = time.monotonic()
        return target.up("1/1/1/1M"), time.monotonic() - begin

    nodes, took = measured(up, lambda made: made[1] < UP_LIMIT_S)
    assert [n.name for n in nodes] == ["web1", "app1", "middleware1", "db1", "client1"]
    assert [target.ssh(n, "hostname").stdout.strip() for n in nodes] == [n.name for n in nodes]
    assert took < UP_LIMIT_S


def test_nodes_are_machines(target):
    (node,) = (n for n in target.up("1/1/1/1M") if n.name == "db1")
    assert target.ssh(node, "ps -o comm= 1").stdout.strip() == "systemd"
    assert target.ssh(node, "systemctl --failed --no-legend").stdout == ""
    assert target.ssh(node, "systemctl list-timers --no-legend").stdout == ""
    memory = int(target.ssh(node, "awk '/MemTotal/ {print $2 * 1024}' /proc/meminfo").stdout)
    assert memory == node.memory_bytes
    assert f" {node.address}/16 " in target.ssh(node, "ip -4 address show dev eth0").stdout


def test_only_keys_open_a_node(target):
    nodes = target.up("1/1/1/1M")
    effective = dict(line.split(" ", 1) for line in target.ssh(nodes[0], "sshd -T").stdout.splitlines())
    assert effective["passwordauthentication"] == "no"
    assert effective["kbdinteractiveauthentication"] == "no"
    assert target.ssh(nodes[0], "getent shadow root").stdout.split(":")[1][0] in "!*"
    keys = {target.ssh(n, "cat /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1] for n in nodes}
    ids = {target.ssh(n, "cat /etc/machine-id").stdout for n in nodes}
    assert len(keys) == len(ids) == len(nodes)


def test_one_more_database_touches_no_other_node(target):
    target.up("1/1/1/1M")
    before = target.pids()
    names = [n.name for n in target.up("1/1/1/2M")]
    after = target.pids()
    assert "db2" in names
    assert {name: after[name] for name in before} == before
    assert set(target.pids()) - set(before) == {"db2"}
    target.up("1/1/1/1M")
    assert target.pids() == before


def test_stopped_and_vanished_nodes_come_back(target):
    nodes = target.up("1/1/1/1M")
    before = target.pids()
    incus("stop", "--force", "web1")
    incus("delete", "--force", "db1")
    target.up("1/1/1/1M")
    after = target.pids()
    assert {name for name in before if before[name] != after[name]} == {"web1", "db1"}
    assert all(target.ssh(n, "true").returncode == 0 for n in nodes)


def sending(node: str) -> str:
    """How what the node sends is limited."""
    pid = incus("list", f"^{node}$", "--format", "csv", "--columns", "p").strip()
    show = ["nsenter", "--target", pid, "--net", "tc", "qdisc", "show", "dev", "eth0"]
    said = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    return re.sub(r"tbf \w+:", "tbf", said)  # the kernel numbers them


def test_a_node_that_something_restarted_is_limited_again(target):
    target.up("1/1/1/1M")
    before = sending("db1")
    assert "tbf" in before
    incus("restart", "--force", "db1")
    assert "tbf" not in sending("db1"), "the limit goes with the container"
    target.up("1/1/1/1M")
    assert sending("db1") == before


@pytest.mark.parametrize("delay_s", [0.2, 0.6, 1.2])
def test_up_works_after_a_killed_one(target, delay_s):
    target.run("destroy", "-input=false", "-auto-approve", f"-var=tiers={tiers('1/1/1/3M')}")
    command = target.command("apply", "-input=false", "-auto-approve", f"-var=tiers={tiers('1/1/1/3M')}")
    killed = subprocess.Popen(
        command, env=target.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until = time.monotonic() + 20
    while not target.pids() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(delay_s)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    nodes = target.up("1/1/1/1M")  # another topology: what was begun for the first one goes
    assert set(target.pids()) == {n.name for n in nodes}
    assert all(target.ssh(n, "hostname").stdout.strip() == n.name for n in nodes)


def test_strangers_are_an_error_that_names_them(target):
    target.up("1/1/1/1M")
    incus("create", "base-trixie", "stranger1")
    done = target.apply("1/1/1/2M")
    assert done.returncode == 1
    said = "no NTIER_STATE has stranger1: if nobody needs them, remove them with  make down"
    assert said in done.stdout + done.stderr
    assert "db2" not in target.pids()
    node_script = target.folder / "node.sh"
    subprocess.run([node_script, "clear"], env=target.environment, check=True)
    assert target.pids() == {}
    target.up("1/1/1/1M")


def test_another_checkout_finds_and_removes_the_nodes(target, tmp_path):
    target.up("1/1/1/1M")
    subprocess.run(["cp", "-r", ROOT / "terraform", tmp_path / "terraform"], check=True)
    other = Target(target.state, tmp_path)
    assert other.run("init", "-input=false").returncode == 0
    assert len(json.loads(other.run("output", "-json", "nodes").stdout)) == 5
    done = other.run("destroy", "-input=false", "-auto-approve", f"-var=tiers={tiers('1/1/1/1M')}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.pids() == {}
    assert not (target.state / "local/nodes").exists()


def test_a_wrong_count_touches_nothing(target):
    empty = json.dumps([{"name": "web", "count": 0, "role": "web"}])
    done = target.run("apply", "-input=false", "-no-color", "-auto-approve", f"-var=tiers={empty}")
    assert done.returncode == 1
    assert "1..99" in done.stderr
    assert target.pids() == {}
