"""Which machines that somebody else set up may become nodes."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ntier_harness.errors import RequestError
from ntier_harness.paths import Paths
from ntier_harness.request import make_spec
from ntier_harness.runner import Done, Runner
from ntier_harness.ssh import Access
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.inventory import Host
from ntier_harness.targets.survey import SCRIPT, Strangers, Survey, mistaken, survey

ANSIBLE = Path(__file__).resolve().parents[2] / "ansible"
FIT = {
    "uid": "0",
    "os": "Debian",
    "distribution": "debian",
    "release": "13",
    "init": "systemd",
    "python": "/usr/bin/python3",
    "owner": "",
    "databases": "",
    "programs": "sshd",
    "listening": "0016",
}


@pytest.mark.parametrize("release", ["12", "13", "13.1", ""])
def test_debian_becomes_a_node(release):
    assert Strangers((), set(), ()).wrong(FIT | {"release": release}, "us") == ""


@pytest.mark.parametrize(
    ("distribution", "release"), [("debian", "11"), ("ubuntu", "24.04"), ("devuan", "5"), ("", "")]
)
def test_nothing_else_does(distribution, release):
    """Derivatives too: what a node installs comes from Debian's archive."""
    said = FIT | {"os": "Something 1", "distribution": distribution, "release": release}
    assert Strangers((), set(), ()).wrong(said, "us") == "runs Something 1; a node is Debian (12 or later)"


def test_of_a_deployment_that_is_gone_it_is_said_how_the_machine_comes_back():
    """Its record is on the machine. To remove the owner's name alone would leave all that was made there."""
    said = Strangers((), set(), ()).wrong(FIT | {"owner": "other-1"}, "us")
    assert said.startswith("belongs to another deployment (other-1); end it there with ntier down --target hosts; ")
    argv = yaml.safe_load((ANSIBLE / "playbooks/destroy.yml").read_text())[0]["tasks"]
    (undo,) = (task["ansible.builtin.command"] for task in argv if "undo" in str(task.get("ansible.builtin.command")))
    assert f"undo on this machine as root what it made there: {undo}, or rm -r /opt/ntier if" in said


def test_a_name_that_only_the_persons_configuration_knows_comes_with_the_reason(tmp_path):
    said = "ssh: Could not resolve hostname lab-web: Name or service not known"
    runner = SimpleNamespace(now=lambda: 0.0, run=lambda argv, **_: Done(argv, 255, "", said))
    with pytest.raises(RequestError, match=r"give its name or address: names of ~/.ssh/config are not known"):
        survey(runner, Paths(tmp_path, tmp_path, tmp_path, "hosts"), "web1", Access("lab-web", "/k"), "us",
               Strangers((), set(), ()))  # fmt: skip


@pytest.mark.parametrize(("port", "known"), [(22, "pc1"), (2222, "'[pc1]:2222'")])
def test_a_changed_host_key_comes_with_the_command_that_forgets_the_old_one(tmp_path, port, known):
    """Of another port, the name in known_hosts has it."""

    def run(argv, **_):
        return Done(argv, 255, "", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @")

    paths = Paths(tmp_path, tmp_path, tmp_path, "hosts")
    runner = SimpleNamespace(now=lambda: 0.0, run=run)
    with pytest.raises(RequestError) as error:
        survey(runner, paths, "web1", Access("pc1", "/k/known_hosts", port=port), "us", Strangers((), set(), ()))
    command = f"ssh-keygen -R {known} -f /k/known_hosts"
    assert str(error.value).endswith(command)
    file = tmp_path / "known_hosts"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(made, check=True)
    key = (tmp_path / "key.pub").read_text().split()[1]
    file.write_text(f"{known.strip(chr(39))} ssh-ed25519 {key}\n")
    subprocess.run(["sh", "-c", command.replace("/k/known_hosts", str(file))], check=True, capture_output=True)
    assert file.read_text() == ""


ANSWER = "".join(f"{key}={value}\n" for key, value in (FIT | {"cores": 2, "memory_kib": 8, "time": 0.0}).items())


def surveyed(tmp_path, done: Done, key_file: str | None = None) -> Survey:
    runner = SimpleNamespace(now=lambda: 0.0, run=lambda *_, **__: done)
    paths = Paths(tmp_path, tmp_path, tmp_path, "hosts")
    access = Access("pc1", "/known", key_file=key_file)
    return survey(runner, paths, "web1", access, "us", Strangers((), set(), ()))


def test_a_machine_whose_shell_prints_is_refused(tmp_path):
    """Whose it is, its facts and its clock are read from what a command prints there."""
    assert surveyed(tmp_path, Done([], 0, ANSWER, "a warning of SSH")).cores == 2
    with pytest.raises(RequestError, match=r"^hosts: web1 \(root@pc1\): its shell prints 'Welcome to pc1!' before"):
        surveyed(tmp_path, Done([], 0, f"Welcome to pc1!\n{ANSWER}", ""))


@pytest.mark.parametrize(
    ("said", "mends"),
    [
        ("Permissions 0644 for '/home/me/k' are too open.\nLoad key \"/home/me/k\": bad permissions\n",
         "run here: chmod 600 /home/me/k"),
        ("", "authorized_keys there. If the key has a passphrase, run here: ssh-add /home/me/k"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_taken_comes_with_what_may_be_wrong_with_it_here(tmp_path, said, mends):
    with pytest.raises(RequestError) as error:
        surveyed(tmp_path, Done([], 255, "", f"{said}root@pc1: Permission denied (publickey)."), "/home/me/k")
    assert str(error.value).endswith(mends)


@pytest.mark.parametrize(
    ("code", "said", "says"),
    [
        (
            127,
            "fish: Unsupported use of '='. In fish, please use 'set uid'",
            "answers, but not what it is asked: fish: ",
        ),
        (1, "This account is currently not available.", "answers, but not what it is asked: This account"),
        (2, "sh: 1: cannot open /etc/os-release: Permission denied", "answers, but not what it is asked: sh: 1: "),
        (1, "sudo: a password is required", "root may not use sudo without a password (sudo: a password"),
        (255, "ssh: connect to host pc1 port 22: No route to host", "cannot be reached: ssh: connect"),
        (
            255,
            "kex_exchange_identification: closed\nsudo.example: Permission denied (publickey).",
            "does not let root in",
        ),
    ],
)
def test_a_machine_that_answers_is_not_said_to_be_out_of_reach(tmp_path, code, said, says):
    with pytest.raises(RequestError) as error:
        surveyed(tmp_path, Done([], code, "", said))
    assert str(error.value).startswith(f"hosts: web1 (root@pc1): {says}")


# ---- what the inventory says of them ---------------------------------------------------------------------------------


def of(machine: str, *addresses: str) -> Survey:
    return Survey(2, 8_000_000_000, "", 0.0, machine, addresses)


def host(address: str, ssh: str = "") -> Host:
    return Host(address, Access(ssh or address, "/known"))


def test_a_machine_that_is_there_twice_is_named():
    hosts = {"web1": host("10.0.0.1"), "db1": host("10.0.0.2"), "client1": host("10.0.1.1")}
    surveys = {"web1": of("a", "10.0.0.1", "10.0.1.1"), "db1": of("b", "10.0.0.2"),
               "client1": of("a", "10.0.0.1", "10.0.1.1")}  # fmt: skip
    (said,) = mistaken(hosts, surveys)
    assert said.startswith("hosts: client1 (root@10.0.1.1): is the same machine as web1 (root@10.0.0.1); each host")
    clones = {"web1": of("a", "10.0.0.1"), "db1": of("a", "10.0.0.2"), "client1": of("a", "10.0.1.1")}
    assert mistaken(hosts, clones) == [], "resumed from one snapshot"
    assert mistaken(hosts, dict.fromkeys(hosts, of(""))) == [], "nobody knows"


@pytest.mark.parametrize(
    ("host", "addresses", "is_wrong"),
    [
        (host("10.0.0.9", "pc1"), ("10.0.0.1", "192.168.7.2"), True),
        (host("10.0.0.1", "pc1"), ("10.0.0.1", "192.168.7.2"), False),
        (host("10.0.0.9"), ("10.0.0.1",), False),  # it came in by this address, so that one is translated on the way
        (host("8.8.4.4", "pc1"), ("10.0.0.1",), False),  # as a cloud's public addresses are
        (host("10.0.0.9", "pc1"), (), False),  # not known
        (dataclasses.replace(host("10.0.0.9", "pc1"), translated=True), ("10.0.0.1",), False),  # a floating address
    ],
)
def test_an_address_that_the_machine_does_not_have_is_refused(host, addresses, is_wrong):
    said = mistaken({"web1": host}, {"web1": of("a", *addresses)})
    assert [line.partition(";")[0] for line in said] == is_wrong * [
        "hosts: web1 (root@pc1): address: 10.0.0.9 is none of its addresses (10.0.0.1, 192.168.7.2), so load would go "
        "to another machine"
    ]


def test_such_machines_are_left_as_they_are(tmp_path, monkeypatch):
    (tmp_path / "state/hosts").mkdir(parents=True)
    lab = tmp_path / "lab.yaml"
    lab.write_text("hosts:\n" + "".join(f"- address: 10.0.0.{i}\n" for i in range(1, 6)))
    root = Path(__file__).resolve().parents[2]
    target = Hosts(Runner(), Paths(root, tmp_path / "state", tmp_path, "hosts"), lab)
    monkeypatch.setattr("ntier_harness.targets.hosts.check_place", lambda _: None)  # a test's folder is long
    monkeypatch.setattr(target, "_survey", lambda _, hosts: dict.fromkeys(hosts, of("a", "10.0.0.1")))
    monkeypatch.setattr(target, "_make_parts", lambda *_: pytest.fail("it goes on"))
    with pytest.raises(RequestError) as error:
        target.up(make_spec({"topo": "1/1/1/1M", "target": "hosts"}, root, 2), tmp_path / "log")
    assert len(error.value.args) == 4


def test_a_machine_says_which_one_it_is_and_its_addresses():
    """This one, twice."""
    once, again = (
        subprocess.run(["sh", "-c", SCRIPT], capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    )
    assert once[0].startswith("uid=")
    for key in ("machine=", "addresses="):
        assert [s for s in once if s.startswith(key)] == [s for s in again if s.startswith(key)]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert any(line.startswith(f"machine={boot} pid:[") for line in once)
    (addresses,) = (line.removeprefix("addresses=").split() for line in once if line.startswith("addresses="))
    assert "127.0.0.1" not in addresses
