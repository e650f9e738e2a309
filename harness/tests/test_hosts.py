"""Target hosts as values: what an inventory file may say, which machine becomes which node, what a heartbeat tells."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.contracts.nodes import Node
from ntier_harness import node_commands, stolen
from ntier_harness.doctor import jdk
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.request import make_spec
from ntier_harness.runner import Done, Runner
from ntier_harness.ssh import Access, Nodes, options
from ntier_harness.targets import hosts
from ntier_harness.targets.heartbeats import parse
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.inventory import Host, Inventory, assign, read_inventory, wanted_nodes

from .conftest import QuietScreen
from .page import copy_checkout, files_shown

TIERS = ("web", "app", "middleware", "db", "client")


@pytest.fixture
def inventory(tmp_path: Path):
    def read(text: str) -> Inventory:
        (tmp_path / "lab.yaml").write_text(text)
        return read_inventory(tmp_path / "lab.yaml", TIERS)

    return read


def test_what_a_host_says_wins_over_what_the_file_says(inventory, tmp_path):
    (tmp_path / "key").touch()
    text = "user: debian\nkey_file: key\nhosts:\n- address: 10.0.0.1\n"
    text += "- {address: 10.0.0.2, ssh: pc2, port: 2222, user: root}"
    first, second = inventory(text).hosts
    assert first.access == Access(
        "10.0.0.1", str(Path.home() / ".ssh/known_hosts"), "debian", 22, str(tmp_path / "key")
    )
    assert (second.access.destination, second.access.port) == ("root@pc2", 2222)
    assert first.access.as_root("id -u") == "sudo -n -- sh -c 'id -u'"
    assert second.access.as_root("id -u") == "id -u"


def test_a_key_without_a_value_says_nothing(inventory, tmp_path):
    """Written `user:`, as a line of which only the value was taken out."""
    (tmp_path / "key").touch()
    keys = ("ssh", "user", "port", "key_file", "tiers", "node_type", "i_may_load_this_public_address")
    host = "".join(f"  {key}:\n" for key in keys)
    read = inventory(f"user: debian\nport: 2222\nkey_file: key\nhosts:\n- address: 10.0.0.1\n{host}")
    assert read.hosts == inventory("user: debian\nport: 2222\nkey_file: key\nhosts:\n- address: 10.0.0.1\n").hosts
    (host,) = read.hosts
    assert (host.access.destination, host.access.port) == ("debian@10.0.0.1", 2222)
    empty = "known_hosts:\napt_sources: {db: }\nuser:\nport:\nkey_file:\nhosts:\n- address: 10.0.0.1\n"
    assert inventory(empty).hosts == inventory("hosts:\n- address: 10.0.0.1\n").hosts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hosts:\n- {address: 10.0.0.1, user: ''}", "user: '' is not the name of a user"),
        (
            "hosts:\n- {address: 10.0.0.1, address_is_translated: 1}",
            "address_is_translated: 1: allowed are true, false",
        ),
        ("hosts: []", "hosts: expected a list of hosts"),
        ("nodes: []", "nodes is unknown; allowed are hosts, known_hosts, apt_sources, user, port, key_file"),
        ("hosts:\n- adress: 10.0.0.1", "host 1: adress is unknown; allowed are address"),
        ("hosts:\n- address: pc1", "host 1: address: 'pc1': expected the IPv4 address"),
        ("hosts:\n- address: 127.0.0.1", "not the address of a single machine"),
        ("hosts:\n- {address: 10.0.0.1, tiers: [database]}", "expected a list of web, app, middleware, db, client"),
        ("hosts:\n- {address: 10.0.0.1, node_type: big}", "allowed are normal, low_cost, client"),
        ("hosts:\n- {address: 10.0.0.1, port: 99999}", "port: 99999: allowed are 1..65535"),
        ("hosts:\n- {address: 10.0.0.1, ssh: '-oProxyCommand=x'}", "is not the name of a machine"),
        ("hosts:\n- {address: 10.0.0.1, key_file: none}", "does not exist"),
        ("hosts:\n- {address: 10.0.0.1, key_file: my key}", "host 1 (10.0.0.1): key_file: "),
        ("hosts:\n- {address: 10.0.0.1, key_file: my key}", "/my key has ' ' in it, which SSH's settings do not take"),
        ("known_hosts: /k%h\nhosts:\n- address: 10.0.0.1", "known_hosts: /k%h has '%' in it"),
        ("hosts:\n- {address: 10.0.0.1, key_file: ~nobody-here/k}", "~nobody-here is the home of no user"),
        ("hosts:\n- address: 10.0.0.1\n- address: 10.0.0.1", "address 10.0.0.1 occurs twice"),
        ("hosts:\n- address: 10.0.0.1\napt_sources: {db: [trixie]}", "expected a list of lines 'deb "),
        ("hosts: [", "not YAML"),
    ],
)
def test_a_wrong_inventory_is_one_clear_error(inventory, text, says):
    with pytest.raises(RequestError) as error:
        inventory(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_key_without_a_value_is_as_if_it_were_not_there(inventory):
    (host,) = inventory("user:\nkey_file:\nknown_hosts:\nhosts:\n- {address: 10.0.0.1, ssh: , user: }").hosts
    assert (host.access.destination, host.access.key_file) == ("root@10.0.0.1", None)


def machines(*hosts: tuple[tuple[str, ...], str | None], network: str = "10.0.0.") -> Inventory:
    listed = (Host(f"{network}{i}", Access(f"{network}{i}", "-"), t, n) for i, (t, n) in enumerate(hosts, 1))
    return Inventory(Path("lab.yaml"), tuple(listed))


def test_hosts_are_taken_in_the_order_of_the_file_and_as_they_are_meant(spec):
    assigned = assign(machines(((), None), (("client",), None), ((), None), (("db", "web"), None), ((), None)), spec())
    addresses = {name: host.address[-1] for name, host in assigned.items()}
    assert addresses == {"web1": "1", "app1": "3", "middleware1": "5", "db1": "4", "client1": "2"}


def test_low_cost_nodes_are_low_cost_machines(spec):
    lab = machines(*[((), None)] * 3, ((), "low_cost"), ((), "client"))
    assert assign(lab, spec(topo="1/1/1/1ML"))["db1"].address == "10.0.0.4"
    with pytest.raises(RequestError, match=r"db needs 1, 3 of the hosts fit"):
        assign(lab, spec(topo="1/1/1/1M"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.sampled_from(["web", "app", "middleware", "db", "client"])), min_size=4, max_size=6))
def test_an_assignment_is_found_whenever_there_is_one(tiers):
    one = make_spec({"topo": "1/1/1/1M", "target": "hosts"}, Path(__file__).resolve().parents[2], 2)
    lab = machines(*((tuple(sorted(t)), None) for t in tiers))
    wanted = wanted_nodes(one)
    possible = any(
        all(host.fits(tier, kind) for host, (_, tier, kind) in zip(choice, wanted, strict=True))
        for choice in itertools.permutations(lab.hosts, len(wanted))
    )
    try:
        assigned = assign(lab, one)
    except RequestError:
        assert not possible
        return
    assert possible
    assert len({h.address for h in assigned.values()}) == len(wanted)
    assert all(assigned[name].fits(tier, kind) for name, tier, kind in wanted)


def test_no_load_goes_to_the_internet_without_a_word(spec, inventory):
    hosts = "\n".join(f"- address: 8.8.4.{i}" for i in range(1, 6))
    with pytest.raises(RequestError, match="an address of the Internet, where no load is sent"):
        assign(inventory(f"hosts:\n{hosts}"), spec())
    said = inventory(f"hosts:\n{hosts}".replace("4.1", "4.1\n  i_may_load_this_public_address: true"))
    assert assign(said, spec())["web1"].address == "8.8.4.1"


def test_whole_machines_are_not_scaled(spec):
    assert spec(target="hosts").scale == 1.0
    assert spec(target="hosts").sweep == "1-1-1-1M.browse_only.shardingsphere.smoke-hosts"
    with pytest.raises(RequestError, match=r"scale: 0.2: target hosts has whole machines"):
        spec(target="hosts", scale="0.2")


def test_host_keys_are_always_checked(tmp_path):
    paths = Paths(tmp_path, tmp_path, tmp_path, "hosts")
    words = options(Access("pc1", "/home/me/.ssh/known_hosts", "me", 2222, "/key"), paths)
    assert {
        "-oStrictHostKeyChecking=yes",
        "-oUserKnownHostsFile=/home/me/.ssh/known_hosts",
        "-oIdentityFile=/key",
    } <= set(words)
    assert words[-2:] == ["-p", "2222"]
    assert not any(o.startswith("-oIdentity") for o in options(Access("pc1", "-"), paths))


def test_a_heartbeat_tells_ages_by_the_nodes_clock_and_how_busy_it_was():
    first = parse(["cpu  100 0 100 800 0 0 0 0 0 0", "at 5000.0"], 10.0, None)
    assert first.busy is None
    lines = ["cpu  160 0 120 900 20 0 0 7 0 0", "sysstat.sa 5001.5", "procstat.csv 4990.0", "at 5002.0"]
    beat = parse(lines, 12.0, first)
    assert beat.ages_s == {"sysstat.sa": 0.5, "procstat.csv": 12.0}
    assert beat.busy == pytest.approx(80 / 200)
    with pytest.raises((ValueError, IndexError)):
        parse(["at"], 1.0, None)


def test_the_most_robbed_machine_counts_and_each_is_asked(tmp_path):
    """db1 loses 8 of 100 ticks between two looks, web1 none."""
    ticks = {"web1": itertools.count(0, 100), "db1": itertools.count(0, 100)}

    def call(node: Node, _command: str, timeout: float) -> Done:
        n = next(ticks[node.name])
        stolen_ticks = 8 * n // 100 if node.name == "db1" else 0
        own = n - stolen_ticks
        return Done([], 0, f"cpu  {own} 0 0 0 0 0 0 {stolen_ticks} 0 0\ncpu0 1 0 0 0 0 0 0 1 0 0\n", "")

    nodes = [Node(name=n, tier=n[:-1], index=1, role="r", address="192.0.2.1", node_type="normal") for n in ticks]
    lab = SimpleNamespace(
        target=Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None),
        nodes=SimpleNamespace(all=nodes, call=call),
        runner=SimpleNamespace(sleep=lambda _seconds: None),
    )
    assert stolen.share_pct(lab) == pytest.approx(8.0)


def test_a_machine_that_does_not_answer_does_not_hold_up_the_others(tmp_path, monkeypatch):
    (tmp_path / "hosts").mkdir()
    target = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None)
    nodes = [Node(name=n, tier=n[:-1], index=1, role="r", address=f"192.0.2.{i}", node_type="normal")
             for i, n in enumerate(("web1", "db1"), 1)]  # fmt: skip

    def call(_self, node, _command, **_):
        if node.name == "db1":
            raise WorkError("db1: no answer")
        return Done([], 0, "", "")

    freed = []
    monkeypatch.setattr(Nodes, "call", call)
    monkeypatch.setattr(hosts, "play", lambda *_args, limit, **_: freed.extend(limit))
    monkeypatch.setattr(target, "_nodes", lambda: nodes)
    monkeypatch.setattr(target._terraform, "destroy", lambda _log: freed.append("state"))
    with pytest.raises(WorkError, match=r"db1 \(192.0.2.2\) does not answer, so what was made there stays"):
        target.down(tmp_path / "log")
    assert freed == ["web1", "state"]
    assert len(target.remarks()) == 1


def test_a_machine_that_became_another_deployments_is_left_alone(tmp_path, monkeypatch):
    """As after a crash before it was claimed, or once its owner's file was removed by hand."""
    (tmp_path / "hosts").mkdir()
    target = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None)
    nodes = [Node(name=n, tier=n[:-1], index=1, role="r", address=f"192.0.2.{i}", node_type="normal")
             for i, n in enumerate(("web1", "db1"), 1)]  # fmt: skip
    owners, freed = {"web1": target.owner, "db1": "other-1"}, []

    def call(_nodes, node: Node, command: str, **_options) -> Done:
        return Done([], 0, ("owner=" if command == hosts.WHOSE else "") + f"{owners[node.name]}\n", "")

    monkeypatch.setattr(Nodes, "call", call)
    monkeypatch.setattr(hosts, "play", lambda *_args, limit, **_: freed.extend(limit))
    monkeypatch.setattr(target, "_nodes", lambda: nodes)
    monkeypatch.setattr(target._terraform, "destroy", lambda _log: None)
    assert [target.present(node) for node in nodes] == [True, False]
    with pytest.raises(RequestError, match=r"hosts: db1 \(192.0.2.2\): just taken by another"):
        target._claim(nodes, set(), *hosts.OWNER_FILES)
    with pytest.raises(WorkError, match=r"db1 \(192.0.2.2\) belongs to another deployment by now \(other-1\)"):
        target.down(tmp_path / "log")
    assert freed == ["web1"]


def test_java_that_cannot_build_is_not_enough(spec, tmp_path, monkeypatch):
    """Told before a machine is looked at: Maven would say so after machines were freed for others."""
    monkeypatch.setattr(Runner, "has", lambda _, program: program != "javac")
    monkeypatch.setattr(Runner, "run", lambda _, argv, **__: Done(argv, 0, "workloads\n", ""))  # is to be built
    target = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None)
    monkeypatch.setattr(target, "assignment", lambda _: {})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RequestError, match=r"^hosts: javac is missing here; apt-get install default-jdk-headless$"):
        target.check(spec(target="hosts"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/javac").write_text("#!/bin/sh\necho javac 25.0.1\n")
    (tmp_path / "bin/javac").chmod(0o755)
    target.check(spec(target="hosts"))  # Maven takes it from there
    lab = Lab(Runner(), target.paths, target, QuietScreen())
    monkeypatch.setattr("ntier_harness.doctor.first_line", lambda _, argv: f"{Path(argv[0]).name} 25.0.1")
    assert (jdk(lab, here=False).level, jdk(lab, here=False).detail) == ("ok", "javac 25")


def test_no_machine_is_given_up_for_what_cannot_be_made(spec, tmp_path, monkeypatch):
    """As where Maven's repository does not answer."""
    (tmp_path / "state/hosts").mkdir(parents=True)
    lab = tmp_path / "lab.yaml"
    lab.write_text("hosts:\n" + "".join(f"- address: 10.0.0.{i}\n" for i in range(1, 6)))
    target = Hosts(Runner(), Paths(tmp_path, tmp_path / "state", tmp_path, "hosts"), lab)

    def fail(*_) -> None:
        raise WorkError("build.py: no repository")

    there = Node(name="web1", tier="web", index=1, role="r", address="192.0.2.1", node_type="normal")
    for name, does in (("_nodes", lambda: [there]), ("_make_parts", fail), ("_free", lambda _: pytest.fail("freed")),
                       ("_survey", lambda *_: {}), ("assignment", lambda _: {})):  # fmt: skip
        monkeypatch.setattr(target, name, does)
    monkeypatch.setattr(hosts, "check_place", lambda _: None)  # a test's folder is long
    monkeypatch.setattr(hosts, "mistaken", lambda *_: [])
    monkeypatch.setattr(hosts, "cut_off", lambda *_: [])  # nor is there a machine to ask
    with pytest.raises(WorkError, match="no repository"):
        target.up(spec(target="hosts"), tmp_path / "log")


@pytest.mark.parametrize("noise", ["", "Welcome to pc1!\n"])
@pytest.mark.parametrize("ours", [True, False])
def test_a_shell_that_prints_since_makes_no_machine_anothers(tmp_path, monkeypatch, ours: bool, noise: str):
    """Else down would leave there what we made, for nobody. So it would where an installation anew took the owner's
    file."""
    (tmp_path / "hosts").mkdir()
    target = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None)
    node, freed = Node(name="web1", tier="web", index=1, role="r", address="192.0.2.1", node_type="normal"), []
    (tmp_path / "owner").write_text(target.owner * ours)

    def call(_nodes, _node, command: str, **_options) -> Done:
        command = command.replace(hosts.OWNER_FILES[0], str(tmp_path / "owner"))
        return Done([], 0, noise + subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout, "")

    monkeypatch.setattr(Nodes, "call", call)
    monkeypatch.setattr(hosts, "play", lambda *_args, limit, **_: freed.extend(limit))
    monkeypatch.setattr(target, "_nodes", lambda: [node])
    monkeypatch.setattr(target._terraform, "destroy", lambda _log: None)
    monkeypatch.setattr(hosts, "FORGET_ANSIBLE", "true")
    assert target.present(node)
    if ours:
        target.stay()
    else:
        with pytest.raises(RequestError, match=r"web1 \(192.0.2.1\) belongs to nobody, not to this deployment"):
            target.stay()
    target.down(tmp_path / "log")
    assert freed == ["web1"]


def test_a_deployment_has_a_name_that_every_shell_takes_as_it_is(tmp_path, monkeypatch):
    """Also where this machine's name is none of the Internet's."""
    (tmp_path / "hosts").mkdir()
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="Zoë's lab; id"))
    owner = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None).owner
    assert re.fullmatch(r"Zo--s-lab--id-[0-9a-f]{8}", owner)


SSH = """#!/bin/sh
# Stand-in: this machine, with a folder for each node's /etc and /opt.
for command; do before=$last last=$command; done
place=$NODES/${before##*@}
mkdir -p $place
echo "$command" | sed "s#/opt/ntier#$place/opt#g; s#/etc/ntier#$place/etc#g" >$place/command
echo "$command" >>$place/called
exec sh $place/command
"""


@pytest.fixture
def machines_by_ssh(tmp_path, monkeypatch) -> Path:
    """Folder with one for each machine that SSH reaches."""
    folder, program = tmp_path / "nodes", tmp_path / "bin/ssh"
    program.parent.mkdir()
    program.write_text(SSH)
    program.chmod(0o755)
    monkeypatch.setenv("NODES", str(folder))
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return folder


def test_of_two_who_want_the_same_machines_neither_keeps_some(machines_by_ssh, tmp_path):
    """Else each would wait for the other's. What was one's own before stays."""
    target = Hosts(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), None)
    (tmp_path / "hosts").mkdir()
    nodes = [Node(name=n, tier=n[:-1], index=1, role="r", address=f"192.0.2.{i}", node_type="normal")
             for i, n in enumerate(("web1", "app1", "db1"), 1)]  # fmt: skip
    files = [machines_by_ssh / node.address / "etc/owner" for node in nodes]
    for file, owner in ((files[1], target.owner), (files[2], "other-1")):
        file.parent.mkdir(parents=True)
        file.write_text(owner)
    with pytest.raises(RequestError, match=r"hosts: db1 \(192.0.2.3\): just taken by another"):
        target._claim(nodes, {"web1", "db1"}, *hosts.OWNER_FILES)
    assert not files[0].parent.exists()
    assert [file.read_text().strip() for file in files[1:]] == [target.owner, "other-1"]


@pytest.mark.parametrize("system", ["shop", "rubbos"])
@pytest.mark.parametrize("owner", ["other-1", ""])
def test_machines_that_are_anothers_by_now_are_not_deployed_to(system, owner, machines_by_ssh, tmp_path, monkeypatch):
    """Whether a system is deployed there, or runs there already and only gets our programs."""
    root, file = tmp_path / "checkout", {"shop": "opt/owner", "rubbos": "etc/owner"}[system]
    copy_checkout(root)
    for name, text in files_shown().items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    paths = Paths(root, tmp_path / "state", tmp_path / "results", "hosts")
    paths.place.mkdir(parents=True)
    spec = make_spec(
        {"system": system, "topo": {"shop": "1/1", "rubbos": "1/1/1/1M"}[system], "target": "hosts"}, root, 2
    )
    names = [name for name, _, _ in wanted_nodes(spec)]
    nodes = [Node(name=n, tier=n[:-1], index=1, role="r", address=f"192.0.2.{i}", node_type="normal")
             for i, n in enumerate(names, 1)]  # fmt: skip
    paths.nodes.write_text(json.dumps([n.model_dump() for n in nodes]))
    for node in nodes:
        (machines_by_ssh / node.address / file).parent.mkdir(parents=True)
        (machines_by_ssh / node.address / file).write_text(f"{owner}\n")
    monkeypatch.setattr(node_commands, "ready_to_deploy", lambda *_: None)  # nothing is installed here
    lab = Lab(Runner(), paths, Hosts(Runner(), paths, None), QuietScreen())
    with pytest.raises(RequestError) as error:
        node_commands.deploy_only(lab, spec, check=False)
    assert str(error.value).startswith(f"hosts: web1 (192.0.2.1) belongs to {owner or 'nobody'}, ")
    assert str(error.value).endswith(f"not to this deployment ({lab.target.owner}); run: ntier up")
    for node in nodes:
        (called,) = (machines_by_ssh / node.address / "called").read_text().splitlines()
        assert "cat /etc/ntier/owner /opt/ntier/owner" in called
        (machines_by_ssh / node.address / file).write_text(lab.target.owner)
    lab.target.stay()


def test_machines_are_measured_from_one_that_has_neither_incus_nor_git(tmp_path, monkeypatch):
    """An archive of the project on a machine that only drives others."""
    terraform = tmp_path / "terraform"
    terraform.write_text('#!/bin/sh\necho \'{"terraform_version": "1.11.4"}\'\n')
    terraform.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    target = SimpleNamespace(terraform="terraform")
    lab = Lab(Runner(), Paths(tmp_path, tmp_path, tmp_path, "hosts"), target, SimpleNamespace())
    lab.describe()
    assert (lab.commit, lab.clean, lab.versions) == (None, None, {"terraform": "1.11.4"})
