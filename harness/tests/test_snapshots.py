"""Snapshots of rented machines with the roles installed, with the real provider and Terraform against the fake: what is
made, what is used, what is outdated, what it costs, and that it goes on where it stopped. SSH and Ansible are stand-ins
(rented_world.py); bench/rented_local.py installs on real nodes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import pytest
from ntier_harness import images, node_commands
from ntier_harness.errors import BudgetReached, RequestError, WorkError
from ntier_harness.targets import imaging, make_target
from ntier_harness.targets.account import NODE, OWNER, Hardware, Snapshot, Thing
from ntier_harness.targets.snapshots import DIGEST, ROLE, Part, fitting, outdated, told

from .fake_cloud import Fault
from .fake_hcloud import DISKS_GB
from .test_rented import NODES, Rental, hcloud_rental  # noqa: F401 (a fixture)

ROLES_OF_IT = {"web": "web", "app": "app", "middleware": "shardingsphere", "db": "postgresql", "client": "client"}


@pytest.fixture
def imager(hcloud_rental: Rental, monkeypatch: pytest.MonkeyPatch) -> Rental:  # noqa: F811
    monkeypatch.setattr(imaging, "EVERY_S", 0.05)
    monkeypatch.setattr(imaging, "OFF_S", 1.0)
    monkeypatch.setattr(sys, "executable", str(hcloud_rental.world.python))
    return hcloud_rental


def make(rental: Rental, **options: str) -> None:
    terms = {"budget": options.pop("budget")} if "budget" in options else {}
    images.make(rental.lab(**terms), rental.spec(**options))


def roles(rental: Rental) -> list[str]:
    return sorted(s["labels"][ROLE] for s in rental.fake.snapshots.values())


def made_from(rental: Rental) -> dict[str, str]:
    """Node -> the role of its snapshot, or the image's name."""
    return {
        s["name"].rpartition("-")[2]: rental.fake.snapshots[int(s["image"])]["labels"][ROLE]
        if str(s["image"]).isdigit() and int(s["image"]) in rental.fake.snapshots
        else "debian-13"
        for s in rental.fake.resources["servers"].values()
    }


def test_a_snapshot_for_each_role_is_made_used_and_removed(imager: Rental, capsys: pytest.CaptureFixture[str]) -> None:
    make(imager)
    assert roles(imager) == sorted(ROLES_OF_IT.values())
    assert all(s["was_off"] for s in imager.fake.snapshots.values())
    assert {s["labels"][OWNER] for s in imager.fake.snapshots.values()} == {imager.lab().target.owner_label}
    assert imager.fake.count() == {}  # of what costs by the hour
    assert all(m["until_s"] for m in imager.ledger())
    assert imager.fake.made == 5
    assert imager.lab().target.snapshots_kept.exists(), "purge refuses as long as they cost"
    (call,) = imager.world.played()
    assert "playbooks/snapshot.yml" in call
    assert "there: Ntier postgresql: program 1.2" in imager.said
    assert imager.said[-1].startswith("5 snapshots cost 0.10 EUR per month; they stay until: ntier images --remove")

    make(imager)
    assert imager.fake.made == 5  # all were there

    imager.up(topo="1/2/1/2P")
    assert made_from(imager) == {f"{tier}{i}": role for tier, role in ROLES_OF_IT.items()
                                 for i in ((1, 2) if tier in ("app", "db") else (1,))}  # fmt: skip
    imager.fake.snapshots.clear()  # deleted by somebody: the machines that are up need it no more
    machines = imager.world.read("machines.json")
    imager.up(topo="1/2/1/2P")
    assert imager.world.read("machines.json") == machines
    imager.down()
    assert imager.fake.count() == {}

    make(imager)
    options = {"remove": False, "owner": None, "as_json": False}
    assert node_commands.leftovers(imager.lab(), **options | {"remove": True}) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("snapshot ")]
    assert len(lines) == 5
    assert all(line.endswith("1.5 GB           ours, kept: 0.020 EUR per month") for line in lines)
    images.remove(imager.lab())
    assert imager.fake.snapshots == {}
    assert not imager.lab().target.snapshots_kept.exists()
    assert node_commands.leftovers(imager.lab(), **options) == 0
    assert "the account holds nothing" in capsys.readouterr().out


def test_an_outdated_snapshot_is_not_used_and_made_anew_alone(imager: Rental) -> None:
    make(imager)
    before = set(imager.fake.snapshots)
    imager.world.installs(postgresql="postgresql-2")
    imager.up()
    assert made_from(imager) == {"web1": "web", "app1": "app", "middleware1": "shardingsphere", "db1": "debian-13",
                                 "client1": "client"}  # fmt: skip
    said = "warning: snapshots of role postgresql are outdated and not used; make them anew: ntier images"
    assert said in imager.said
    with pytest.raises(RequestError, match="machines are up for something else; end that first: ntier down"):
        make(imager)  # what was deployed on them is in no snapshot
    imager.down()
    rented = imager.fake.made
    make(imager)
    assert imager.fake.made == rented + 1
    assert len(imager.fake.snapshots) == 5
    assert len(set(imager.fake.snapshots) - before) == 1
    imager.up()
    assert made_from(imager)["db1"] == "postgresql"
    imager.down()


def test_a_disk_that_is_too_small_gets_no_snapshot(imager: Rental) -> None:
    assert DISKS_GB["cpx12"] < DISKS_GB["ccx13"]
    make(imager)
    imager.up(topo="1/1/1/1PL")
    assert made_from(imager)["db1"] == "debian-13"
    assert made_from(imager)["web1"] == "web"
    imager.down()


def test_it_goes_on_where_it_stopped_on_the_machines_that_it_had(imager: Rental) -> None:
    (imager.world.stand_in / "fails").touch()
    with pytest.raises(WorkError, match="snapshot: no space left"):
        make(imager)
    assert imager.node_names() == NODES
    assert any("5 rented machines cost 0.50 EUR per hour" in said for said in imager.said)
    (imager.world.stand_in / "fails").unlink()
    imager.fake.spoilt = 1
    with pytest.raises(WorkError, match=r"the snapshot of role \w+ is unavailable; the same command tries again"):
        make(imager)
    assert imager.fake.made == 5
    assert len(imager.fake.snapshots) == 4
    make(imager)
    assert roles(imager) == sorted(ROLES_OF_IT.values())
    assert imager.fake.made == 6  # the one that was off is made anew
    assert imager.fake.count() == {}


def test_a_lost_answer_makes_no_second_snapshot(imager: Rental) -> None:
    imager.fake.faults = [Fault("error_after", of="snapshot", times=2), Fault("rate", of="snapshot", skip=2),
                          Fault("error", of="shutdown")]  # fmt: skip
    make(imager)
    assert roles(imager) == sorted(ROLES_OF_IT.values())
    assert imager.fake.count() == {}


def test_down_waits_for_machines_that_a_snapshot_is_taken_of(imager: Rental, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise WorkError("stopped here")

    imager.fake.snapshot_s = 3.0
    with monkeypatch.context() as patched:
        patched.setattr(imaging.Imaging, "await_snapshot", stopped)
        with pytest.raises(WorkError, match="stopped here"):
            make(imager)
    assert imager.fake.count()["servers"] == 5
    imager.down()
    assert imager.fake.count() == {}
    make(imager)  # what was asked for came all the same
    assert imager.fake.made == 5
    assert len(imager.fake.snapshots) == 5


def test_a_budget_that_does_not_cover_them_rents_nothing(imager: Rental) -> None:
    with pytest.raises(RequestError, match=r"0.40 EUR do not cover the images of 1/1/1/1P, which need 0.50 EUR; noth"):
        make(imager, budget="0.4EUR")
    assert imager.fake.made == 0


def test_machines_that_are_rented_anew_count_against_the_budget(imager: Rental) -> None:
    """After a crash, in the middle of the work: the hours of those that are gone are spent."""
    (imager.world.stand_in / "fails").touch()
    with pytest.raises(WorkError, match="no space left"):
        make(imager, budget="0.8EUR")
    server = next(iter(imager.fake.resources["servers"].values()))
    for other in imager.fake.resources["servers"].values():
        other["status"] = "running" if other is server else "off"
    with pytest.raises(BudgetReached, match=r"0.80 EUR do not cover the images .* \(0.50 EUR of it are spent already"):
        make(imager, budget="0.8EUR")
    assert imager.fake.made == 5
    assert imager.fake.count() == {}


def test_leftovers_of_another_owner_include_its_snapshots(imager: Rental) -> None:
    make(imager)
    for snapshot in imager.fake.snapshots.values():
        snapshot["labels"] = snapshot["labels"] | {OWNER: "theirs"}
    images.remove(imager.lab())
    assert len(imager.fake.snapshots) == 5
    imager.up()
    assert set(made_from(imager).values()) == {"debian-13"}  # another owner's are not used either
    imager.down()
    assert node_commands.leftovers(imager.lab(), remove=True, owner="theirs", as_json=True) == 0
    assert imager.fake.snapshots == {}


def test_only_a_target_that_keeps_snapshots_makes_them(lab) -> None:
    with pytest.raises(RequestError, match="target: local makes no snapshots; give --target hcloud"):
        images.remove(lab())
    machine = lab()
    assert make_target("hosts", machine.runner, machine.paths, None).kept() == ""


class Keeper:
    """An account with one machine, which is off at once."""

    def __init__(self) -> None:
        self.kept: list[Snapshot] = []

    def find(self, _owner: str) -> list[Thing]:
        return [Thing("machine", "1", "web1", {NODE: "web1"}, status="off")]

    def snapshots(self, _owner: str | None = None) -> list[Snapshot]:
        return self.kept

    def shut_down(self, _machine: Thing, *, at_once: bool = False) -> None:
        """It is off."""

    def take_snapshot(self, _machine: Thing, name: str, labels: dict[str, str]) -> None:
        self.kept = [*self.kept, Snapshot(name, name, labels, "available", 80.0)]

    def remove_snapshots(self, which: list[Snapshot]) -> None:
        self.kept = [s for s in self.kept if s not in which]


def test_snapshots_are_noted_until_the_last_of_ours_is_gone(lab) -> None:
    """`make purge` refuses as long as they are: a new state would have another name, to which they do not belong."""
    machine, target = lab(), imaging.Imaging()
    target.name, target.keeps_snapshots, target.owner_label, target.account = "hcloud", True, "us", Keeper()
    target.runner, target.paths = machine.runner, replace(machine.paths, target="hcloud")
    target.paths.place.mkdir(parents=True)
    for digest in ("a", "b"):
        target.take_snapshot(Part("web", "web", digest), digest)
    first, second = target.own_snapshots()
    target.remove_snapshots([first])
    assert target.snapshots_kept == target.paths.state / "hcloud/snapshots.json"
    assert target.snapshots_kept.exists()
    target.remove_snapshots([second])
    assert not target.snapshots_kept.exists()
    target.snapshots_kept.write_text("{}")  # somebody removed them in the provider's console
    target.remove_snapshots([])
    assert not target.snapshots_kept.exists()


def test_a_snapshot_for_other_machines_is_not_the_one_that_was_asked_for(lab) -> None:
    """The request fails, and one of the same installation is there, which fits no machine of this type."""
    machine, target, keeper = lab(), imaging.Imaging(), Keeper()
    target.name, target.keeps_snapshots, target.owner_label, target.account = "hcloud", True, "us", keeper
    target.runner, target.paths = machine.runner, replace(machine.paths, target="hcloud")
    target.paths.place.mkdir(parents=True)
    part = Part("web", "web", "a")
    target.take_snapshot(part, "of larger machines")
    take, tries = keeper.take_snapshot, []

    def refused_once(*args: Any) -> None:
        tries.append(args)
        if len(tries) == 1:
            raise WorkError("500")
        take(*args)

    keeper.take_snapshot = refused_once
    target.take_snapshot(part, "of small ones")
    assert [s.name for s in keeper.kept] == ["Ntier web: of larger machines", "Ntier web: of small ones"]


# ---- values


def snapshot(digest: str = "a", role: str = "web", status: str = "available", price: float | None = 0.02) -> Snapshot:
    return Snapshot(f"{role}{digest}", role, {ROLE: role, DIGEST: digest}, status, 80.0, None, price, "x86")


def test_only_a_snapshot_of_just_this_installation_fits() -> None:
    part = Part("web", "web", "a")
    there = [snapshot("b"), snapshot("a", "app"), snapshot("a", status="creating"), snapshot("a")]
    assert fitting(part, there, Hardware(80.0, "x86")) is there[3]
    assert fitting(part, there, Hardware(40.0, "x86")) is None
    assert fitting(part, there, Hardware(80.0, "arm")) is None
    assert fitting(part, there, None) is None  # a type that the provider does not list
    assert outdated([part], there) == [there[0]]
    assert outdated([part], [snapshot("a", status="unavailable")]) != []


def test_what_snapshots_cost_is_a_sum_that_says_what_it_leaves_out() -> None:
    assert told([snapshot(), snapshot()], "EUR") == "2 snapshots cost 0.040 EUR per month"
    unknown = [snapshot(), snapshot(price=None)]
    assert told(unknown, "EUR") == "2 snapshots cost 0.020 EUR per month (1 of unknown size not counted)"
    assert json.loads(json.dumps(images.as_data(snapshot(), "x")))["price_per_month"] == 0.02
