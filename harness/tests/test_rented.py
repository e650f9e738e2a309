"""Target hcloud with the real provider and Terraform against a fake of the provider's API, which counts what exists."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ntier_analysis.contracts.manifest import Rent
from ntier_analysis.contracts.nodes import read_nodes
from ntier_harness import node_commands
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec, make_spec
from ntier_harness.targets import make_target, rented

from .conftest import QuietScreen
from .fake_hcloud import TOKEN, FakeHcloud, Fault
from .rented_world import BUILT, ROOT, SEEN_FROM, TERRAFORM, RentedWorld, provider

NODES = ["app1", "client1", "db1", "middleware1", "web1"]


class Rental:
    """The harness in this process, anew for each command as a person would call it."""

    def __init__(self, world: RentedWorld) -> None:
        self.world, self.fake = world, world.fake
        self.said: list[str] = []

    def lab(self, **terms: str) -> Lab:
        runner, paths = Runner(), Paths(self.world.root, self.world.state, self.world.folder / "results", "hcloud")
        target = make_target("hcloud", runner, paths, None, str(self.world.offer), **terms)
        screen = QuietScreen()
        screen.said = self.said
        return Lab(runner, paths, target, screen, "ntier up")

    def spec(self, **options: Any) -> Spec:
        usual = {"topo": "1/1/1/1P", "data": "tiny", "target": "hcloud", "phases": "smoke", "users": "1000"}
        return make_spec(usual | options, self.world.root, 2)

    def up(self, **options: Any) -> Lab:
        lab = self.lab()
        node_commands.up(lab, self.spec(**options), options)
        return lab

    def down(self) -> None:
        node_commands.down(self.lab())

    def node_names(self) -> list[str]:
        return sorted(n.rpartition("-")[2] for n in self.fake.names())

    def ledger(self) -> list[dict[str, Any]]:
        return self.world.read("rented.json")["machines"]


@pytest.fixture
def rental(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rental]:
    with FakeHcloud() as fake, tempfile.TemporaryDirectory(prefix="nt-") as folder:
        world = RentedWorld(Path(folder) / "w", fake)
        for name, value in world.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(rented, "SETTLE_S", 0.3)
        monkeypatch.setattr(rented, "BOOT_S", 0.5)
        yield Rental(world)


def secrets_in(folder: Path, *texts: str) -> list[str]:
    """Files that have one of these in them."""
    files = [f for f in folder.rglob("*") if f.is_file() and not f.is_symlink() and "providers" not in f.parts]
    return [str(f) for f in files if any(t.encode() in f.read_bytes() for t in texts)]


def test_from_nothing_to_nodes_and_back_to_nothing(rental: Rental) -> None:
    lab = rental.up()
    place = rental.world.state / "hcloud"
    assert rental.fake.count() == {"servers": 5, "primary_ips": 5, "networks": 1, "firewalls": 1,
                                   "placement_groups": 1, "ssh_keys": 1}  # fmt: skip
    assert rental.node_names() == NODES

    nodes = {n.name: n for n in read_nodes(place / "nodes.json")}  # the contract of every target
    assert nodes["db1"].address == "10.98.4.1"
    assert (nodes["db1"].role, nodes["db1"].image, nodes["db1"].cpu_cores) == ("postgresql", "postgresql-tiny", None)
    assert nodes["db1"].cores == 2
    assert nodes["db1"].memory_bytes == 7900000 * 1024  # as the machine said, not as its type does

    access = json.loads((place / "access.json").read_text())
    known = dict(line.split(" ", 1) for line in (place / "known_hosts").read_text().splitlines())
    for name, text in rental.fake.user_data.items():  # no first connection is blind
        data, node = yaml.safe_load(text), name.rpartition("-")[2]
        assert data["ssh_keys"]["ed25519_public"].split()[:2] == known[access[node]["host"]].split()
        assert data["ssh_keys"]["ed25519_private"] == (place / "host_keys" / node).read_text()
    firewall = next(iter(rental.fake.resources["firewalls"].values()))
    assert [r["source_ips"] for r in firewall["rules"]] == [[f"{SEEN_FROM}/32"]]

    rent = Rent.model_validate(lab.target.rent())
    assert sum(rent.price_per_hour.values()) == pytest.approx(4 * 0.0829 + 0.1649)
    assert rent.location == "fsn1"
    assert rent.calibration["db1"]["network_bits_s"] == 4e9
    assert "5 rented machines cost 0.50 EUR per hour" in rental.said[0]

    host_key = (place / "host_keys" / "db1").read_text().splitlines()[2]
    assert secrets_in(rental.world.folder, TOKEN) == []
    assert secrets_in(rental.world.folder, host_key) == [str(place / "host_keys" / "db1")]
    for file in ("terraform.tfstate", "id_ed25519", "host_keys/db1"):
        assert (place / file).stat().st_mode & 0o077 == 0, file

    machines, began = rental.world.read("machines.json"), rental.ledger()
    rental.up()
    assert rental.world.read("machines.json") == machines  # nothing was made anew
    assert rental.ledger() == began
    assert rental.fake.made == 5

    rental.down()
    assert rental.fake.count() == {}
    assert all(m["until_s"] for m in rental.ledger())
    assert lab.target.instances() == {}
    assert rental.said[-1] == f"given back, and nothing is left: {', '.join(NODES)}"
    rental.down()
    assert rental.said[-1] == "no nodes were up"


def test_broken_answers_are_outlived_and_leave_nothing_behind(rental: Rental) -> None:
    rental.fake.faults = [
        Fault("error_after", "POST", "/servers$", skip=1),  # made, but nobody is told
        Fault("error_after", "POST", "/networks$"),
        Fault("rate", "POST", "/firewalls$"),
        Fault("slow", "POST", "/primary_ips$", seconds=1.0),
    ]
    rental.up()
    assert rental.node_names() == NODES
    assert rental.fake.count()["primary_ips"] == 5
    rental.fake.faults = [Fault("error", "DELETE", "/servers/", times=2), Fault("error", "DELETE", "/networks/")]
    rental.down()
    assert rental.fake.count() == {}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("quota", "POST", "/servers$", skip=2, times=99), "server limit reached (resource_limit_exceeded)"),
        (Fault("error", "POST", "/servers$", skip=3, times=99), "something went wrong (server_error)"),
    ],
)
def test_what_does_not_pass_is_an_error_and_everything_is_given_back(rental: Rental, fault: Fault, says: str) -> None:
    rental.fake.faults = [fault]
    with pytest.raises(WorkError) as error:
        rental.up()
    assert says in str(error.value)
    assert str(error.value).endswith("; everything was given back")
    assert rental.fake.count() == {}
    assert all(m["until_s"] for m in rental.ledger())


def test_where_no_machines_are_free_the_next_location_has_them(rental: Rental) -> None:
    rental.fake.faults = [Fault("capacity", "POST", "/servers$", location="fsn1", times=99, skip=2)]
    lab = rental.up()
    assert lab.target.location() == "nbg1"
    assert {s["location"] for s in rental.fake.resources["servers"].values()} == {"nbg1"}
    assert rental.fake.count()["servers"] == 5
    rental.down()
    assert rental.fake.count() == {}


def test_a_silent_machine_is_replaced_once(rental: Rental) -> None:
    rental.world.silence("203.0.113.1")
    lab = rental.lab()
    addresses = iter(["203.0.113.1", *(f"203.0.113.{i}" for i in range(10, 40))])
    given: dict[int, str] = {}
    rental.fake.addresses = lambda i: given.setdefault(i, next(addresses))
    with pytest.raises(WorkError, match=r"no answer by SSH within 0.5 s, nor from the machine that replaced it"):
        node_commands.up(lab, rental.spec(), {})
    assert rental.fake.made == 6
    assert rental.fake.count() == {}
    rental.world.silence()
    rental.up()
    assert rental.node_names() == NODES
    rental.down()
    assert rental.fake.count() == {}


def test_if_none_answers_none_is_replaced(rental: Rental) -> None:
    rental.world.silence(*(f"203.0.113.{i}" for i in range(1, 10)))
    with pytest.raises(WorkError, match=r"none of 5 machines answers by SSH within 0.5 s; is port 22 open"):
        rental.up()
    assert rental.fake.made == 5
    assert rental.fake.count() == {}


def test_another_sweep_keeps_the_machines(rental: Rental) -> None:
    rental.up()
    machines = rental.world.read("machines.json")
    rental.up(phases="standard", mix="read_write", users="1000:9000:1000")
    assert rental.world.read("machines.json") == machines
    rental.up(topo="1/1/1/2P")
    assert rental.world.read("machines.json").items() > machines.items()
    rental.up()
    assert rental.world.read("machines.json") == machines
    assert rental.node_names() == NODES
    rental.down()
    assert rental.fake.count() == {}


def test_a_lost_state_and_machines_that_are_off_or_gone_are_mended(rental: Rental) -> None:
    rental.up()
    servers = list(rental.fake.resources["servers"].values())
    servers[0]["status"] = "off"  # as after its own expiry
    rental.fake.answer("DELETE", f"/v1/servers/{servers[1]['id']}", f"Bearer {TOKEN}", {})
    rental.up()
    assert rental.node_names() == NODES
    assert rental.fake.made == 7
    assert len(rental.ledger()) == 7  # the two that came instead cost hours of their own
    assert {s["status"] for s in rental.fake.resources["servers"].values()} == {"running"}
    (rental.world.state / "hcloud" / "terraform.tfstate").write_text('{"version": 4, "resou')  # a crash while writing
    rental.down()
    assert rental.fake.count() == {}


def test_leftovers_are_found_and_others_are_left_alone(rental: Rental, capsys: pytest.CaptureFixture[str]) -> None:
    ours = rental.lab().target.owner_label
    far = f"{time.time() + 3600:.0f}"
    for name, owner, expires in (("a", ours, far), ("b", "theirs", far), ("c", "late", "1000")):
        labels = {"ntier-owner": owner, "ntier-work": "x", "ntier-expires": expires}
        rental.fake.answer("POST", "/v1/networks", f"Bearer {TOKEN}", {"name": name, "ip_range": "10.0.0.0/8",
                                                                       "labels": labels})  # fmt: skip
    options = {"remove": False, "owner": None, "as_json": False}
    assert node_commands.leftovers(rental.lab(), **options) == 1
    lines = capsys.readouterr().out.splitlines()
    assert ["ours, left over" in lines[0], "of theirs, not ours" in lines[1], "left over, past its time" in lines[2]]
    assert node_commands.leftovers(rental.lab(), **options | {"remove": True}) == 0
    assert rental.fake.names("networks") == ["b"]
    assert node_commands.leftovers(rental.lab(), **options | {"remove": True, "owner": "theirs"}) == 0
    assert rental.fake.count() == {}


def test_a_budget_too_small_for_one_trial_rents_nothing(rental: Rental) -> None:
    lab = rental.lab(budget="0.4EUR")
    with pytest.raises(RequestError, match=r"budget: 0.40 EUR do not last for one trial of .*: that needs 0.50 EUR"):
        node_commands.up(lab, rental.spec(), {})
    assert rental.fake.made == 0


def test_prices_that_rose_count_and_are_told(rental: Rental) -> None:
    rental.fake.address_price = 0.05
    lab = rental.up()
    assert lab.target.rent()["price_per_hour"]["client1"] == pytest.approx(0.1639 + 0.05)
    assert any(
        "ccx13 costs 0.1319 EUR per hour today, machines.json of 2026-08-17 says 0.0829" in s for s in rental.said
    )
    rental.down()


def test_without_a_token_nothing_begins(rental: Rental, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HCLOUD_TOKEN")
    for command in (rental.up, rental.down):
        with pytest.raises(RequestError, match="hcloud: HCLOUD_TOKEN is not in the environment"):
            command()
    assert rental.fake.requests == []


@pytest.mark.parametrize("draw", range(2))
def test_a_kill_at_any_moment_leaves_nothing_after_down(rental: Rental, draw: int) -> None:
    """bench/kills_of_rentals.py draws a hundred."""
    rng = random.Random(draw)
    process = subprocess.Popen(rental.world.up_argv(), env=rental.world.environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, cwd=rental.world.root)  # fmt: skip
    wanted = rng.randrange(1, 17)  # requests that make something
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if sum(r.startswith("POST") for r in list(rental.fake.requests)) >= wanted:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    rental.down()
    assert rental.fake.count() == {}


REGISTRY_SILENT = ("Failed to query available provider packages", "Failed to install provider", "Could not retrieve")


@pytest.mark.parametrize("target", ["hcloud", "openstack", "aws"])
def test_the_roots_are_valid(tmp_path: Path, target: str) -> None:
    """With a provider that was built here, else with the registry's; skipped where there is neither."""
    provider()  # where there is none, the registry was asked in vain
    shutil.copytree(ROOT / "terraform", tmp_path / "terraform", ignore=shutil.ignore_patterns(".terraform*"))
    root = tmp_path / "terraform" / "targets" / target
    (root / "tests" / "keys").mkdir(parents=True)
    for node in ("web1", "app1", "app2", "middleware1", "client1", *(f"db{i}" for i in range(1, 10))):
        for name in (node, f"{node}.pub"):
            (root / "tests" / "keys" / name).write_text("not a key\n")
    own = [f"-plugin-dir={BUILT}"] if any(BUILT.glob(f"*/*/{target}")) else []
    terraform = [TERRAFORM or "terraform", f"-chdir={root}"]
    environment = os.environ | {"TF_CLI_CONFIG_FILE": "/dev/null", "CHECKPOINT_DISABLE": "1"}
    try:
        done = subprocess.run([*terraform, "init", "-backend=false", "-input=false", "-no-color", *own],
                              capture_output=True, text=True, timeout=150, env=environment)  # fmt: skip
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"Terraform or the registry of providers is not to be had: {error}")
    if any(text in done.stderr for text in REGISTRY_SILENT):
        pytest.skip(f"the provider of {target} is neither built here nor to be had from the registry")
    assert done.returncode == 0, done.stderr
    for command in ("validate", "test"):  # `test`: without asking the provider (tests/*.tftest.hcl); aws has none
        done = subprocess.run([*terraform, command, "-no-color"], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
