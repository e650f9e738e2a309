"""Targets that rent machines, each with the real provider and Terraform against a fake of the provider's API, which
counts what exists."""

from __future__ import annotations

import contextlib
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
from ntier_harness.request import make_spec
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.targets import clearing, make_target, reaching

from .conftest import QuietScreen
from .fake_cloud import FakeCloud, Fault
from .fake_hcloud import FakeHcloud
from .fake_openstack import FakeOpenstack
from .rented_world import BUILT, ROOT, SEEN_FROM, TERRAFORM, RentedWorld, provider

NODES = ["app1", "client1", "db1", "middleware1", "web1"]
SAYS = {
    "hcloud": {
        "quota": "server limit reached (resource_limit_exceeded)",
        "error": "something went wrong (server_error)",
        "nobody": "hcloud: HCLOUD_TOKEN is not in the environment",
    },
    "openstack": {
        "quota": "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
        "error": "Unexpected API Error.",
        "nobody": "openstack: OS_CLOUD is not in the environment",
    },
}
only_hcloud = pytest.mark.parametrize("rental", [FakeHcloud], indirect=True)
only_openstack = pytest.mark.parametrize("rental", [FakeOpenstack], indirect=True)


class Rental:
    """The harness in this process, anew for each command as a person would call it."""

    def __init__(self, world: RentedWorld) -> None:
        self.world, self.fake = world, world.fake
        self.said: list[str] = []

    def lab(self, **terms: str) -> Lab:
        runner = Runner()
        paths = Paths(self.world.root, self.world.state, self.world.folder / "results", self.fake.target)
        target = make_target(self.fake.target, runner, paths, None, str(self.world.offer), **terms)
        screen = QuietScreen()
        screen.said = self.said
        return Lab(runner, paths, target, screen, "ntier up")

    def spec(self, **options: Any) -> Spec:
        usual = {"topo": "1/1/1/1P", "data": "tiny", "target": self.fake.target}
        usual |= {"phases": "smoke", "users": "1000"}
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


@contextlib.contextmanager
def renting(cloud: type[FakeCloud], monkeypatch: pytest.MonkeyPatch) -> Iterator[Rental]:
    with cloud() as fake, tempfile.TemporaryDirectory(prefix="nt-") as folder:
        world = RentedWorld(Path(folder) / "w", fake)
        for name, value in world.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(clearing, "SETTLE_S", 0.3)
        monkeypatch.setattr(reaching, "BOOT_S", 0.5)
        yield Rental(world)


@pytest.fixture(params=[FakeHcloud, FakeOpenstack], ids=lambda fake: fake.target)
def rental(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rental]:
    with renting(request.param, monkeypatch) as made:
        yield made


@pytest.fixture
def hcloud_rental(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rental]:
    with renting(FakeHcloud, monkeypatch) as made:
        yield made


def secrets_in(folder: Path, *texts: str) -> list[str]:
    """Files that have one of these in them."""
    files = [f for f in folder.rglob("*") if f.is_file() and not f.is_symlink() and "providers" not in f.parts]
    return [str(f) for f in files if any(t.encode() in f.read_bytes() for t in texts)]


def test_from_nothing_to_nodes_and_back_to_nothing(rental: Rental) -> None:
    lab = rental.up()
    place = rental.world.place
    assert rental.fake.count() == rental.fake.expected(5)
    assert rental.node_names() == NODES

    nodes = {n.name: n for n in read_nodes(place / "nodes.json")}  # the contract of every target
    assert nodes["db1"].address == "10.98.4.1"
    assert (nodes["db1"].role, nodes["db1"].image, nodes["db1"].cpu_cores) == (
        "postgresql", rental.spec().data_folder, None,
    )  # fmt: skip
    assert nodes["db1"].cores == 2
    assert nodes["db1"].memory_bytes == 7900000 * 1024  # as the machine said, not as its type does

    access = json.loads((place / "access.json").read_text())
    known = dict(line.split(" ", 1) for line in (place / "known_hosts").read_text().splitlines())
    for name, text in rental.fake.user_data.items():  # no first connection is blind
        data, node = yaml.safe_load(text), name.rpartition("-")[2]
        assert data["ssh_keys"]["ed25519_public"].split()[:2] == known[access[node]["host"]].split()
        assert data["ssh_keys"]["ed25519_private"] == (place / "host_keys" / node).read_text()
    assert rental.fake.let_in() == [[f"{SEEN_FROM}/32"]]

    rent = Rent.model_validate(lab.target.rent())
    types = lab.target.offer.node_types
    price = 4 * types["normal"].price_per_hour + types["client"].price_per_hour
    assert sum(rent.price_per_hour.values()) == pytest.approx(price)
    assert rent.location == rental.fake.locations[0]
    assert rent.calibration["db1"]["network_bits_s"] == 4e9
    assert f"5 rented machines {'cost 0.50 EUR per hour' if price else 'stay'} until" in rental.said[0]

    host_key = (place / "host_keys" / "db1").read_text().splitlines()[2]
    assert secrets_in(rental.world.folder, *rental.fake.secrets) == []
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
        Fault("error_after", of="machine", skip=1),  # made, but nobody is told
        Fault("error_after", of="network"),
        Fault("rate", of="filter"),
        Fault("slow", of="address", seconds=1.0),
    ]
    rental.up()
    assert rental.node_names() == NODES
    assert rental.fake.count() == rental.fake.expected(5)
    rental.fake.faults = [Fault("error", "DELETE", "machine", times=2), Fault("error", "DELETE", "network")]
    rental.down()
    assert rental.fake.count() == {}


@pytest.mark.parametrize(("kind", "skip"), [("quota", 2), ("error", 3)])
def test_what_does_not_pass_is_an_error_and_everything_is_given_back(rental: Rental, kind: str, skip: int) -> None:
    rental.fake.faults = [Fault(kind, skip=skip, times=99)]
    with pytest.raises(WorkError) as error:
        rental.up()
    assert SAYS[rental.fake.target][kind] in str(error.value)
    assert str(error.value).endswith("; everything was given back")
    assert rental.fake.count() == {}
    assert all(m["until_s"] for m in rental.ledger())


def test_where_no_machines_are_free_the_next_location_has_them(rental: Rental) -> None:
    first, second = rental.fake.locations
    rental.fake.faults = [Fault("capacity", location=first, times=99, skip=2)]
    lab = rental.up()
    assert lab.target.location() == second
    assert {rental.fake.where(s) for s in rental.fake.resources["servers"].values()} == {second}
    assert rental.fake.count() == rental.fake.expected(5)
    rental.down()
    assert rental.fake.count() == {}


def test_where_one_more_machine_is_not_free_those_that_are_up_stay(rental: Rental) -> None:
    first, second = rental.fake.locations
    rental.up()
    machines = rental.world.read("machines.json")
    rental.fake.faults = [Fault("capacity", location=first, times=99)]
    with pytest.raises(WorkError) as error:
        rental.up(topo="1/1/1/2P")
    assert str(error.value).startswith(
        f"{rental.fake.target}: {first} has no free machine for db2; the others stay, what was to be replaced may be "
        "gone. Try later, or other types; or, if all may be anew, ntier down --target "
        f"{rental.fake.target}: then each of {first}, {second}"
    )
    assert rental.node_names() == NODES
    assert sorted(m["node"] for m in rental.ledger() if not m["until_s"]) == NODES  # db2 costs nothing
    rental.up()
    assert rental.world.read("machines.json") == machines
    rental.down()
    assert rental.fake.count() == {}
    rental.up(topo="1/1/1/2P")
    assert rental.lab().target.location() == second
    rental.down()


def test_an_attempt_that_broke_off_does_not_keep_from_other_locations(rental: Rental) -> None:
    """Nothing of it is up, so all locations are tried."""
    first, second = rental.fake.locations
    rental.lab().target._location_file.parent.mkdir(parents=True, exist_ok=True)
    rental.lab().target._location_file.write_text(json.dumps(first))
    rental.fake.faults = [Fault("capacity", location=first, times=99)]
    assert rental.up().target.location() == second
    rental.down()


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


def test_a_machine_that_replaces_a_silent_one_is_used(rental: Rental) -> None:
    rental.world.silence("203.0.113.1")

    def created(_: dict[str, Any]) -> None:
        if rental.fake.made == 6:  # the sixth one is the first that came in another's place
            rental.world.silence()

    rental.fake.created = created
    rental.up()
    assert rental.node_names() == NODES
    assert rental.fake.made == 6
    assert len(rental.ledger()) == 6  # the hour of the silent one was paid for, too
    rental.down()
    assert rental.fake.count() == {}


def test_if_none_answers_none_is_replaced(rental: Rental) -> None:
    rental.world.silence(*(f"203.0.113.{i}" for i in range(1, 10)))
    with pytest.raises(WorkError, match=r"none of 5 machines answers by SSH within 0.5 s; check that port 22"):
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


def test_an_address_that_another_machine_had_is_known_by_the_new_one_s_key(rental: Rental) -> None:
    def known(node: str) -> tuple[str, list[str]]:
        """Its address, and the keys that are taken there."""
        address = rental.world.read("access.json")[node]["host"]
        lines = (rental.world.place / "known_hosts").read_text().splitlines()
        return address, [line.split()[2] for line in lines if line.split()[0] == address]

    def key(node: str) -> str:
        return (rental.world.place / "host_keys" / f"{node}.pub").read_text().split()[1]

    rental.up(topo="1/1/1/2P")
    address, keys = known("db2")
    assert keys == [key("db2")]
    rental.up()
    rental.up(topo="1/2/1/1P")
    assert known("app2") == (address, [key("app2")])
    rental.down()
    assert rental.fake.count() == {}


@only_hcloud
def test_a_machine_that_the_state_misses_does_not_hold_up_down(rental: Rental) -> None:
    """Found by a drawn kill: the provider waits, longer each time, until no machine is attached to the network."""
    rental.up()
    file = rental.world.place / "terraform.tfstate"
    state = json.loads(file.read_text())
    for resource in state["resources"]:
        if resource["type"] == "hcloud_server":
            resource["instances"] = [i for i in resource["instances"] if i["index_key"] != "db1"]
    file.write_text(json.dumps(state))
    rental.down()
    assert rental.fake.count() == {}
    assert sum(r.endswith("/delete_subnet") for r in rental.fake.requests) == 1


def test_a_lost_state_and_machines_that_are_off_or_gone_are_mended(rental: Rental) -> None:
    rental.up()
    servers = list(rental.fake.resources["servers"].values())
    runs = servers[0]["status"]
    rental.fake.switch_off(servers[0])  # as after its own expiry
    rental.fake.take_away(servers[1])
    rental.up()
    assert rental.node_names() == NODES
    assert rental.fake.made == 7
    assert len(rental.ledger()) == 7  # the two that came instead cost hours of their own
    assert {s["status"] for s in rental.fake.resources["servers"].values()} == {runs}
    (rental.world.place / "terraform.tfstate").write_text('{"version": 4, "resou')  # a crash while writing
    rental.down()
    assert rental.fake.count() == {}


def test_leftovers_are_found_and_others_are_left_alone(rental: Rental, capsys: pytest.CaptureFixture[str]) -> None:
    ours = rental.lab().target.owner_label
    far = f"{time.time() + 3600:.0f}"
    for name, owner, expires in (("a", ours, far), ("b", "theirs", far), ("c", "late", "1000")):
        labels = {"ntier-owner": owner, "ntier-work": "x", "ntier-expires": expires}
        rental.fake.add_network(name, labels)
    options = {"remove": False, "owner": None, "as_json": False}
    assert node_commands.leftovers(rental.lab(), **options) == 1
    lines = capsys.readouterr().out.splitlines()
    assert ["ours, left over" in lines[0], "of theirs, not ours" in lines[1], "left over, past its time" in lines[2]]
    assert node_commands.leftovers(rental.lab(), **options | {"remove": True}) == 0
    assert rental.fake.names("networks") == ["b"]
    assert node_commands.leftovers(rental.lab(), **options | {"remove": True, "owner": "theirs"}) == 0
    assert rental.fake.count() == {}


@only_hcloud
def test_a_budget_too_small_for_one_trial_rents_nothing(rental: Rental) -> None:
    lab = rental.lab(budget="0.4EUR")
    with pytest.raises(RequestError, match=r"budget: 0.40 EUR do not cover one trial of .*, which needs 0.50 EUR"):
        node_commands.up(lab, rental.spec(), {})
    assert rental.fake.made == 0


@only_hcloud
def test_prices_that_rose_count_and_are_told(rental: Rental) -> None:
    rental.fake.address_price = 0.05
    lab = rental.up()
    assert lab.target.rent()["price_per_hour"]["client1"] == pytest.approx(0.1639 + 0.05)
    assert any(
        "ccx13 costs 0.1319 EUR per hour today, machines.json of 2026-08-17 says 0.0829" in s for s in rental.said
    )
    rental.down()


@only_openstack
def test_what_the_cloud_does_not_have_is_named_with_what_there_is(rental: Rental) -> None:
    offer = json.loads(rental.world.offer.read_text())
    offer["node_types"]["normal"]["type"] = "huge"
    rental.world.offer.write_text(json.dumps(offer | {"image": "debian", "locations": {"zone9": "internet"}}))
    with pytest.raises(RequestError) as error:
        rental.up()
    assert str(error.value) == (
        f"machines: {rental.world.offer}: no flavor huge; there are: m1.large, m1.medium, m1.small; no availability "
        "zone zone9; there are: zone1, zone2; no outside network internet; there are: public; no image of the name "
        "debian; there are: debian-13"
    )
    assert rental.fake.count() == {}
    lab = rental.lab()
    told = [f"{f.what} {f.level}: {f.detail}" for f in lab.target.doctor(lab)]
    assert "account ok: lets us in; 0 things of ours in it" in told
    assert "machines fail: no flavor huge; there are: m1.large, m1.medium, m1.small" in told


def test_without_credentials_nothing_begins(rental: Rental, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in rental.fake.environment:
        monkeypatch.delenv(name)
    for command in (rental.up, rental.down):
        with pytest.raises(RequestError, match=SAYS[rental.fake.target]["nobody"]):
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


def test_terraform_alone_makes_1_2_1_9_a_second_plan_changes_nothing_and_all_goes(rental: Rental) -> None:
    """14 machines, by the root as it is."""
    target, spec = rental.lab().target, rental.spec(topo="1/2/1/9M")
    target.make_keys(spec)
    target.choose_images(spec)
    target._location_file.write_text(json.dumps(rental.fake.locations[0]))
    log = rental.world.folder / "terraform.log"
    nodes = target._terraform.apply(target.variables(spec), log)
    assert len(nodes) == 14
    groups = {"placement_groups": 2} if rental.fake.target == "hcloud" else {}  # one holds ten
    assert rental.fake.count() == rental.fake.expected(14) | groups
    target._terraform._run("plan", "-detailed-exitcode", "-input=false",
                           f"-var-file={target._terraform._variables}", log=log)  # fmt: skip
    target._terraform.destroy(log)
    assert rental.fake.count() == {}


REGISTRY_SILENT = ("Failed to query available provider packages", "Failed to install provider", "Could not retrieve")


@pytest.mark.parametrize("target", ["hcloud", "openstack", "aws"])
def test_the_roots_are_valid(tmp_path: Path, target: str) -> None:
    """With a provider that was built here, else with the registry's; skipped where there is neither."""
    fakes: dict[str, type[FakeCloud]] = {"hcloud": FakeHcloud, "openstack": FakeOpenstack}
    provider(fakes.get(target, FakeHcloud))  # where there is none, the registry was asked in vain
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
