"""What rented machines cost, what their budget allows, and where they are rented: all that needs no provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ntier_analysis.contracts.nodes import Node
from ntier_harness.errors import BudgetReached, RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.plan_view import price_lines
from ntier_harness.runner import Runner
from ntier_harness.targets import kind, make_target, rented
from ntier_harness.targets.account import NODE, Thing
from ntier_harness.targets.hosts import Hosts
from ntier_harness.targets.paying import DOWN_S, Paying, last_moment
from ntier_harness.targets.rental import Ledger, MachineType, hours, parse_budget, priced, read_offer
from ntier_harness.targets.terraform import Failed

ROOT = Path(__file__).resolve().parents[2]
OFFER = ROOT / "terraform/targets/hcloud/machines.json"
SMALL = MachineType(type="s", cores=1, memory_bytes=1, price_per_hour=0.5)


@pytest.mark.parametrize("target", ["hcloud", "openstack"])
def test_the_offer_has_all_node_types_and_says_where_its_prices_come_from(target: str) -> None:
    offer = read_offer(ROOT / "terraform/targets" / target / "machines.json")
    assert set(offer.node_types) == {"normal", "low_cost", "client"}
    assert offer.source
    assert offer.date >= "2026-06-15"  # Hetzner's prices rose two- to threefold on that day


def test_the_page_says_what_topologies_cost_by_these_prices() -> None:
    done = subprocess.run([sys.executable, ROOT / "docs" / "prices.py", "--check"], check=False)
    assert done.returncode == 0, "docs/prices.py writes the table of docs/targets.md anew"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"currency": "Euro"}, "currency: String should match pattern"),
        ({"currency": "S"}, "currency: String should match pattern"),
        ({"node_types": {}}, "node_types: Dictionary should have at least 1 item"),
        ({"locations": {}}, "locations"),
        ({"apt": {"x": {"source": "deb http://x", "keyid": "8D3785C", "roles": []}}}, "apt.x.keyid"),
        ({"price": 1}, "price: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_offer_names_file_and_field(tmp_path: Path, change: dict, says: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(json.loads(OFFER.read_text()) | change))
    with pytest.raises(RequestError) as error:
        read_offer(file)
    assert says in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(("text", "amount"), [("5EUR", 5), ("5", 5), ("0.5 eur", 0.5)])
def test_a_budget_has_an_amount_and_may_have_a_currency(text: str, amount: float) -> None:
    assert parse_budget(text, "EUR") == amount


@pytest.mark.parametrize(("text", "says"), [("5USD", "prices are in EUR"), ("0", "above 0"), ("much", "above 0"),
                                            ("-1EUR", "above 0")])  # fmt: skip
def test_a_wrong_budget_says_what_is_expected(text: str, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        parse_budget(text, "EUR")


def test_started_hours_count_and_one_at_least() -> None:
    assert [hours(s) for s in (0, 1, 3600, 3601, 7200.5)] == [1, 1, 1, 2, 3]


def test_the_price_of_a_topology_is_the_sum_of_its_machines() -> None:
    offer = read_offer(OFFER)
    price = priced(offer, {"db1": "normal", "db2": "low_cost", "client1": "client"})
    assert price["per_hour"] == pytest.approx(0.0829 + 0.0228 + 0.1649)
    assert price["machines"] == {"ccx13": 1, "cpx12": 1, "ccx23": 1}
    with pytest.raises(RequestError, match="no machine for node type huge; there are: normal, low_cost, client"):
        offer.of("huge")


# ---- ledger


def test_the_ledger_counts_from_before_a_machine_is_asked_for_until_it_is_gone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rented.json", "EUR")
    assert ledger.spent(0) == 0
    ledger.rent({"db1": SMALL, "db2": SMALL}, "mine", 1000)
    ledger.rent({"db1": SMALL, "db2": SMALL}, "mine", 2000)  # they are there already
    assert len(ledger.open()) == 2
    assert ledger.spent(1001) == 1.0
    ledger.give_back(1000 + 3601, {"db2"})
    assert ledger.spent(1000 + 2 * 3600) == 2 * 0.5 + 2 * 0.5
    ledger.rent({"db2": SMALL}, "mine", 9000)  # another machine in its place is another hour
    ledger.give_back(9001)
    assert not ledger.open()
    assert ledger.spent(1e9) == 3 * 0.5 + 2 * 0.5 + 0.5
    assert (tmp_path / "rented.json").stat().st_mode & 0o777 == 0o600


def test_a_machine_in_place_of_another_has_hours_of_its_own(tmp_path: Path) -> None:
    """Both count until it is there; if it does not come after all, the one before stays."""
    ledger = Ledger(tmp_path / "rented.json", "EUR")
    ledger.rent({"db1": SMALL, "db2": SMALL, "web1": SMALL}, "mine", 0)
    ledger.settle(0, 50, {"db1": "1", "db2": "2", "web1": "3"}, dict.fromkeys(("db1", "db2", "web1"), SMALL))
    ledger.rent({"db1": SMALL, "db2": SMALL}, "mine", 100, {"db1", "db2"})
    assert ledger.spent(200) == 5 * 0.5
    ledger.settle(150, 200, {"db1": "4", "db2": "2"}, {"db1": SMALL, "db2": SMALL})
    assert [(m.node, m.from_s) for m in ledger.open()] == [("db2", 0), ("db1", 100)]
    assert ledger.spent(300) == 5 * 0.5


def test_a_machine_that_was_replaced_for_a_reason_that_nobody_expected_has_hours_of_its_own(tmp_path: Path) -> None:
    """Its user data changed, say. What an older version noted says not which machine it was."""
    ledger = Ledger(tmp_path / "rented.json", "EUR")
    ledger.rent({"db1": SMALL, "db2": SMALL}, "mine", 0)
    ledger.recognise({"db1": "1", "db2": "2"})
    ledger.settle(7000, 7300, {"db1": "3", "db2": "2"}, {"db1": SMALL, "db2": SMALL})
    assert [(m.node, m.from_s, m.until_s, m.work) for m in ledger.machines()] == [
        ("db1", 0, 7300, "mine"), ("db2", 0, None, "mine"), ("db1", 7000, None, "mine")
    ]  # fmt: skip
    before = ledger.machines()
    ledger.recognise({"db1": "1", "db2": "2"})
    ledger.settle(9000, 9001, {"db1": "3", "db2": "2"}, {"db1": SMALL, "db2": SMALL})
    assert ledger.machines() == before, "the same machines go on"


def test_a_sweep_answers_for_its_own_machines_and_for_those_that_it_found(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "rented.json", "EUR")
    ledger.rent({"db1": SMALL}, "other", 0)
    ledger.give_back(10)
    ledger.rent({"db1": SMALL}, "", 20)  # by `ntier up`
    assert ledger.spent(30, "mine") == 0.5
    assert ledger.spent(30) == 1.0
    ledger.find("mine")
    ledger.find("mine")
    ledger.give_back(40)  # it did not answer, say
    assert [ledger.spent(50, work) for work in ("mine", "other", "later")] == [0.5, 0.5, 0]


@settings(max_examples=30, deadline=None)
@given(
    starts=st.lists(st.floats(0, 8000), min_size=1, max_size=4),
    now_s=st.floats(8000, 9000),
    budget=st.floats(0.6, 12),
)
def test_until_the_last_moment_the_budget_holds_and_after_it_does_not(tmp_path_factory, starts, now_s, budget) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("l") / "rented.json", "EUR")
    for i, start in enumerate(starts):
        ledger.rent({f"n{i}": SMALL}, "mine", start)
    last = last_moment(ledger, budget, "mine", now_s)
    if ledger.spent(now_s, "mine") > budget:
        assert last == now_s
        return
    assert ledger.spent(last, "mine") <= budget
    assert ledger.spent(last + 3601, "mine") > budget


class Clock:
    """A runner as far as money needs one."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.stop = self

    def now(self) -> float:
        return self.now_s


class Payer(Paying):
    def __init__(self, place: Path, budget: str | None) -> None:
        self.name, self.root, self.runner = "hcloud", OFFER.parent, Clock()
        self.paths = type("Paths", (), {"place": place})()
        self.set_terms(None, budget)


def test_a_trial_that_would_exceed_the_budget_is_not_begun(tmp_path: Path) -> None:
    payer = Payer(tmp_path, "1EUR")
    payer.work = "mine"
    payer.ledger.rent({"db1": SMALL}, "mine", 0)
    payer.runner.now_s = 1800
    payer.afford(4000)  # two hours
    payer.runner.now_s = 7200 - DOWN_S - 100
    payer.afford(99)
    with pytest.raises(
        BudgetReached, match=r"would bring the cost to 1.50 EUR, allowed are 1.00 EUR \(1.00 EUR so far"
    ):
        payer.afford(200)


def test_machines_that_go_during_a_sweep_stay_in_its_cost(tmp_path: Path) -> None:
    """Of two machines of `ntier up` one falls silent, and another one takes its place."""
    payer = Payer(tmp_path, "1.4EUR")
    payer.ledger.rent({"db1": SMALL, "web1": SMALL}, "", 0)
    payer.begin("mine")
    payer.ledger.give_back(10, {"db1"})
    payer.ledger.rent({"db1": SMALL}, "mine", 20)
    with pytest.raises(BudgetReached, match=r"would bring the cost to 1.50 EUR, allowed are 1.40 EUR"):
        payer.afford(60)
    payer.give_back()  # ends the watch


def test_a_budget_that_lasts_for_no_trial_is_refused_before_anything_is_rented(tmp_path: Path, spec) -> None:
    asked = spec(target="hcloud", phases="smoke")
    with pytest.raises(RequestError, match=r"0.30 EUR do not cover one trial of .*, which needs 0.50 EUR; nothing was"):
        Payer(tmp_path, "0.3EUR").check_budget(asked)
    Payer(tmp_path, "0.5EUR").check_budget(asked)
    price = Payer(tmp_path, "2EUR").price(asked, 3000)
    assert (price["hours"], price["expected"]) == (2, round(2 * (4 * 0.0829 + 0.1649), 2))


def test_a_node_with_a_longer_name_than_a_machine_may_have_is_refused(tmp_path, spec, monkeypatch) -> None:
    paths = Paths(ROOT, tmp_path, tmp_path, "hcloud")
    target, asked = kind("hcloud")(Runner(), paths), spec(target="hcloud")
    monkeypatch.setattr(Hosts, "check", lambda *_: None)
    monkeypatch.setattr(Runner, "has", lambda *_: True)
    target.check(asked)
    monkeypatch.setattr(rented, "wanted_nodes", lambda _: [(f"{25 * 'a'}10", "a", "normal")])
    with pytest.raises(RequestError, match=r"hcloud: a{25}10 is too long for the name of its machine; allowed are 26"):
        target.check(asked)


def test_the_prices_of_the_location_that_is_tried_count(tmp_path, spec, monkeypatch) -> None:
    """Where the first one has no machines, and they cost twice as much in the second one."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, "0.6EUR")
    target.paths.place.mkdir()
    asked, tried, usual = (
        spec(target="hcloud"),
        [],
        {t.type: t.price_per_hour for t in target.offer.node_types.values()},
    )

    def apply(*_) -> None:
        tried.append(target.location())
        raise Failed("no machines", "error (resource_unavailable)")

    prices = {"fsn1": usual, "nbg1": {name: 2 * price for name, price in usual.items()}}
    monkeypatch.setattr(type(target), "account", SimpleNamespace(prices=prices.get))
    for name, instead in (("_apply", apply), ("_note_rental", lambda _: None), ("down", lambda _: None)):
        monkeypatch.setattr(target, name, instead)
    target.check_budget(asked)
    with pytest.raises(RequestError, match=r"budget: 0.60 EUR do not cover one trial .* needs 0.99 EUR"):
        target._rent(asked, tmp_path / "log")
    assert tried == ["fsn1"]
    ccx13 = next(said for said in target._remarks if said.startswith("ccx13"))
    assert ccx13.startswith("ccx13 costs 0.1658 EUR per hour today, machines.json of ")
    assert "says 0.0829" in ccx13


def test_a_key_of_which_a_full_disk_left_half_is_made_anew(tmp_path, spec) -> None:
    target, asked = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud")), spec(target="hcloud")
    target.make_keys(asked)
    public = target.key.with_suffix(".pub")
    kept, host = public.read_text(), (target.host_keys / "db1").read_text()
    target.make_keys(asked)
    assert public.read_text() == kept
    public.write_text("")
    target.make_keys(asked)
    assert public.read_text().startswith("ssh-ed25519 ")
    assert (target.host_keys / "db1").read_text() == host


@pytest.mark.parametrize("up", [True, False], ids=["machines are up", "an attempt broke off"])
def test_where_no_machine_is_free_what_is_up_stays_and_what_is_not_comes_elsewhere(tmp_path, spec, monkeypatch, up):
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, None)
    target.paths.place.mkdir()
    asked, tried, downs = spec(target="hcloud", topo="1/1/1/2M"), [], []
    there = {n: t for n, t in target.node_types(asked).items() if n != "db2"}
    things = [Thing("machine", name, name, labels={NODE: name}) for name in there]
    if up:
        target.ledger.rent({n: target.offer.of(t) for n, t in there.items()}, "", 0)
        target.paths.nodes.write_text("[]")
    target._location_file.write_text(json.dumps("nbg1"))

    def apply(*_) -> None:
        tried.append(target.location())
        raise Failed("no machines", "error (resource_unavailable)")

    account = SimpleNamespace(prices=lambda _: {}, find=lambda _: things)
    monkeypatch.setattr(type(target), "account", account)
    monkeypatch.setattr(target._terraform, "ids", lambda: set(there))
    for name, instead in (("_apply", apply), ("note_account", lambda: None), ("down", downs.append)):
        monkeypatch.setattr(target, name, instead)
    with pytest.raises(WorkError) as error:
        target._rent(asked, tmp_path / "log")
    if up:
        assert str(error.value).startswith(
            "hcloud: nbg1 has no free machine for db2; the others stay, what was to be replaced may be gone. Try"
        )
        assert "ntier down --target hcloud: then each of fsn1, nbg1, hel1 is tried" in str(error.value)
        assert (tried, downs) == (["nbg1"], [])
        assert {m.node for m in target.ledger.open()} == set(there)  # db2 costs nothing
    else:
        assert str(error.value).startswith("hcloud: no machines are free in nbg1, fsn1, hel1")
        assert tried == ["nbg1", "fsn1", "hel1"]


@pytest.mark.parametrize("up", [True, False], ids=["machines are up", "none was up"])
def test_where_nothing_is_free_instead_of_a_silent_machine_it_is_said_what_stays(tmp_path, spec, monkeypatch, up):
    """What Terraform says of it is for its log."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, None)
    target.paths.place.mkdir()
    asked, there = spec(target="hcloud"), {"web1": "normal", "db1": "normal"}
    things = [Thing("machine", "web1", "web1", labels={NODE: "web1"})]
    target._location_file.write_text(json.dumps("nbg1"))
    if up:
        target.paths.nodes.write_text("[]")

    def apply(_spec, _log, replace=()) -> list[Node]:
        target.paths.nodes.write_text("[]")
        if replace:
            raise Failed("terraform apply: Error: error during placement", "error (resource_unavailable)")
        target.ledger.rent({n: target.offer.of(t) for n, t in there.items()}, "", 0)
        return []

    monkeypatch.setattr(type(target), "account", SimpleNamespace(prices=lambda _: {}, find=lambda _: things))
    monkeypatch.setattr(target._terraform, "ids", lambda: {"web1"})
    instead = {"_apply": apply, "node_types": lambda _: there, "note_account": lambda: None,
               "_take_prices_of_today": lambda _: None, "hosts": lambda _: dict.fromkeys(there),
               "boot": lambda hosts: {n: "10.0.0.1" if n == "web1" else None for n in hosts},
               "controllers": lambda: [rented.reaching.ANYWHERE]}  # fmt: skip
    for name, function in instead.items():
        monkeypatch.setattr(target, name, function)
    with pytest.raises(WorkError) as error:
        target._reach(asked, tmp_path / "log")
    said = str(error.value)
    assert "terraform apply" not in said
    if up:
        assert said.startswith("hcloud: nbg1 has no free machine for db1 to replace what did not answer by ")
        assert (
            "; the others stay, what was to be replaced may be gone. Try later, or other types; or, if all may" in said
        )
        assert [m.node for m in target.ledger.open()] == ["web1"]
    else:
        assert said.startswith("hcloud: db1: no answer by SSH within ")
        assert "nbg1 has no free machine instead; try later, other types, or another location first in " in said


def test_what_comes_beside_machines_that_are_up_has_the_prices_of_today(tmp_path, spec, monkeypatch) -> None:
    """Another process goes on, perhaps months after the date of the file."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, "5EUR")
    target.paths.place.mkdir()
    account = SimpleNamespace(prices=lambda _: {"ccx13": 0.2}, lacks=lambda _: [])
    monkeypatch.setattr(type(target), "account", account)
    target.ledger.rent({"web1": SMALL}, "x", Runner().now())
    target._check_terms(spec(target="hcloud"))
    assert (target.offer.of("normal").price_per_hour, target.ledger.open()[0].price_per_hour) == (0.2, 0.5)


def things(nodes: set[str]) -> list[Thing]:
    """Machines of these nodes, as the provider lists them; the number of each is its name."""
    return [Thing("machine", name, name, labels={NODE: name}) for name in nodes]


def test_a_node_whose_type_changes_gets_another_machine_at_its_own_price(tmp_path, spec, monkeypatch) -> None:
    """A cheap one first: what a dear one costs in its place would not be on record. After an error nobody knows which
    one is there, and both count."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, None)
    target.paths.place.mkdir()
    cheap, dear = (spec(target="hcloud", topo=topo) for topo in ("1/1/1/1ML", "1/1/1/1M"))
    machines, says = dict.fromkeys(target.node_types(cheap), "1"), ["", "(resource_unavailable)", ""]
    there: set[str] = set()

    def apply(*_) -> list[Node]:
        if said := says.pop(0):
            raise Failed("terraform apply: Error", said)
        target._terraform.outputs = {"machines": dict(machines)}
        there.update(machines)
        target.paths.nodes.write_text("[]")
        return []

    def noted() -> list[tuple[str, bool]]:
        return [(m.type, m.until_s is None) for m in target.ledger.machines() if m.node == "db1"]

    monkeypatch.setattr(type(target), "account", SimpleNamespace(find=lambda _: things(there)))
    monkeypatch.setattr(target._terraform, "apply", apply)
    monkeypatch.setattr(target._terraform, "ids", lambda: there)
    for name in ("variables", "write_access", "note_account"):
        monkeypatch.setattr(target, name, lambda *_: {})
    target._rent(cheap, tmp_path / "log")
    machines["db1"] = "2"
    with pytest.raises(WorkError, match=r"hcloud: fsn1 has no free machine for db1; the others stay, what was"):
        target._rent(dear, tmp_path / "log")
    assert noted() == [("cpx12", True), ("ccx13", True)]
    target._rent(dear, tmp_path / "log")
    assert noted() == [("cpx12", False), ("ccx13", True)]
    assert len(target.ledger.machines()) == len(machines) + 1, "the others are what they were"


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_after_an_attempt_with_another_type_a_third_one_and_the_first_have_prices_of_their_own(
    tmp_path, spec, monkeypatch, back: bool, gone: bool
) -> None:
    """A record of the attempt was taken for the machine that came after it. `gone`: Terraform destroyed the first one
    before it found no other."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, None)
    target.paths.place.mkdir()
    cheap, dear = (spec(target="hcloud", topo=topo) for topo in ("1/1/1/1ML", "1/1/1/1M"))
    machines, says = dict.fromkeys(target.node_types(cheap), "1"), ["", "(resource_unavailable)"]
    there: set[str] = set()

    def apply(*_) -> list[Node]:
        if says and (said := says.pop(0)):
            there.difference_update(["db1"] * gone)
            raise Failed("terraform apply: Error", said)
        target._terraform.outputs = {"machines": dict(machines)}
        there.update(machines)
        target.paths.nodes.write_text("[]")
        return []

    monkeypatch.setattr(type(target), "account", SimpleNamespace(find=lambda _: things(there)))
    monkeypatch.setattr(target._terraform, "apply", apply)
    monkeypatch.setattr(target._terraform, "ids", lambda: there)
    for name in ("variables", "write_access", "note_account"):
        monkeypatch.setattr(target, name, lambda *_: {})
    target._rent(cheap, tmp_path / "log")
    with pytest.raises(WorkError, match="has no free machine for db1"):
        target._rent(dear, tmp_path / "log")
    third = target.offer.of("normal").model_copy(update={"type": "ccx63", "price_per_hour": 2.0})
    if not back:
        types = target.offer.node_types | {"normal": third}
        target.offer = target.offer.model_copy(update={"node_types": types})
    if gone or not back:
        machines["db1"] = "2"
    wanted = cheap if back else dear
    for _ in range(2):  # the second one finds all as it should be
        target._rent(wanted, tmp_path / "log")
        open_ = [(m.type, m.price_per_hour) for m in target.ledger.open() if m.node == "db1"]
        assert open_ == [(t.type, t.price_per_hour) for t in [target.offer.of(target.node_types(wanted)["db1"])]]
    noted = [m.type for m in target.ledger.machines() if m.node == "db1"]
    assert noted == ["cpx12", "ccx13", *([] if back and not gone else ["cpx12"] if back else ["ccx63"])]


def test_who_only_looks_makes_no_state(tmp_path, monkeypatch) -> None:
    """`ntier doctor` is the first command on the page, and may be an ordinary user's."""
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path / "none", tmp_path, "hcloud"), None, None)
    other = Thing("machine", "1", "ntier-other-web1", labels={"ntier-owner": "other"})
    monkeypatch.setattr(type(target), "account", SimpleNamespace(find=lambda *_: [other], lacks=lambda _: []))
    monkeypatch.setenv("HCLOUD_TOKEN", "a" * 64)
    found = {finding.what: finding for finding in target.doctor(None)}
    assert (found["account"].level, found["account"].detail) == ("ok", "lets us in; 0 things of ours in it")
    assert target.instances() == {}
    assert not (tmp_path / "none").exists()
    target.paths.place.mkdir(parents=True)
    assert target.owner_label != "other"
    assert target.instances() == {"ntier-other-web1": "there"}, "the provider has told those of this owner"


def test_a_node_with_another_part_gets_another_machine(tmp_path, spec) -> None:
    target = kind("hcloud")(Runner(), Paths(ROOT, tmp_path, tmp_path, "hcloud"), None, None)
    target.paths.place.mkdir()
    asked = spec(target="hcloud", topo="1/1/1/1M")
    target.ledger.rent({n: target.offer.of(t) for n, t in target.node_types(asked).items()}, "", 0)
    node = Node(name="db1", tier="db", index=1, role="mysql", address="10.0.0.1", node_type="normal")
    target.paths.nodes.write_text(json.dumps([node.model_dump()]))
    assert target.made_anew(asked) == set()
    assert target.made_anew(spec(target="hcloud", topo="1/1/1/1P")) == {"db1"}
    (target.paths.place / "topology.auto.tfvars.json").write_text('{"system": "another"}')
    assert target.made_anew(asked) == set(target.node_types(asked))


def test_where_nobody_keeps_the_budget_any_more_it_is_said(tmp_path: Path) -> None:
    payer = Payer(tmp_path, "2EUR")
    payer.ledger.rent({"web1": SMALL, "db1": SMALL}, "x", payer.runner.now())
    said = "2 rented machines cost 1.00 EUR per hour, also beyond the budget of 2.00 EUR until: ntier down"
    assert payer.still_rented() == f"{said} --target hcloud"


def test_a_budget_is_not_compared_with_another_currency(tmp_path: Path, spec) -> None:
    """Also where nothing new is rented, and where what was spent is over."""
    Ledger(tmp_path / "rented.json", "SU").rent({"db1": SMALL}, "mine", 0)
    payer = Payer(tmp_path, "100EUR")
    asked, payer.work = spec(target="hcloud"), "mine"
    payer.node_types = lambda _: {"db1": "normal"}
    with pytest.raises(RequestError, match="machines: db1 are rented in SU, and these prices are in EUR"):
        payer.check_budget(asked)
    payer.ledger.give_back(10)
    with pytest.raises(RequestError, match="budget: what mine cost before is in SU, and these prices are in EUR"):
        payer.check_budget(asked)
    payer.work = "another"
    payer.check_budget(asked)
    payer.ledger.rent({"db1": SMALL}, "another", 20)
    assert [(m.currency, m.price_per_hour) for m in payer.ledger.machines()] == [("SU", 0.5), ("EUR", 0.5)]
    assert payer.ledger.spent(30) == 0.5, "sums of two currencies are not one"
    Payer(tmp_path, None).check_budget(asked)


def test_machines_that_came_by_another_file_cost_what_that_one_says(tmp_path: Path) -> None:
    """`ntier status` and `ntier down` are given none."""
    Ledger(tmp_path / "rented.json", "SU").rent({"db1": SMALL}, "", 0)
    payer = Payer(tmp_path, None)
    assert payer.still_rented().startswith("1 rented machine costs 0.50 SU per hour until: ")
    assert payer.rent()["currency"] == "SU"
    with pytest.raises(
        RequestError, match="machines: db1 are rented in SU, and these prices are in EUR; give the file"
    ):
        payer.ledger.rent({"db2": SMALL}, "", 0)
    payer.ledger.give_back(10)
    assert json.loads((tmp_path / "rented.json").read_text())["currency"] == "SU"
    payer.ledger.rent({"db2": SMALL}, "", 20)
    assert payer.still_rented().startswith("1 rented machine costs 0.50 EUR per hour until: ")


def test_machines_go_with_the_work_that_they_were_rented_for(tmp_path: Path) -> None:
    payer = Payer(tmp_path, None)
    assert not payer.give_back()
    payer.ledger.rent({"db1": SMALL}, "", 0)
    assert not payer.give_back()
    assert payer.still_rented() == "1 rented machine costs 0.50 EUR per hour until: ntier down --target hcloud"
    payer.ledger.rent({"db2": SMALL}, "mine", 0)
    assert payer.give_back()


def test_only_a_target_that_rents_takes_a_budget(lab) -> None:
    machine = lab()
    for option in ("machines", "budget"):
        says = f"{option}: target local rents no machines; give --target hcloud or openstack"
        with pytest.raises(RequestError, match=says):
            make_target("local", machine.runner, machine.paths, None, **{option: "5EUR"})
    assert kind("hcloud").rents
    with pytest.raises(RequestError, match=r"scale: 0.2: target hcloud has whole machines"):
        kind("hcloud").parse_scale("0.2", 2, 1.0)


def test_where_there_are_no_prices_a_budget_is_refused_and_none_is_told(tmp_path: Path, spec) -> None:
    file = ROOT / "terraform/targets/openstack/machines.json"
    payer = Payer(tmp_path, None)
    payer.set_terms(file, None)
    payer.ledger.rent({"db1": payer.offer.of("normal")}, "", 0)
    assert payer.still_rented() == "1 rented machine stays until: ntier down --target hcloud"
    price = payer.price(spec(target="openstack", phases="smoke"), 3000)
    assert price_lines(price)[0].startswith("price     not known: 4 m1.medium, 1 m1.large; most clouds of universities")
    with pytest.raises(RequestError, match=r"budget: .*machines.json has no prices, so a budget would never be"):
        payer.set_terms(file, "5EUR")


def test_purge_does_not_forget_machines_that_are_rented(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "hcloud" / "rented.json", "EUR")
    ledger.file.parent.mkdir()
    ledger.rent({"db1": SMALL}, "", 0)

    def purge() -> str:  # without --yes and a terminal it never removes anything
        argv = ["bash", str(ROOT / "setup/purge.sh")]
        environment = os.environ | {"NTIER_STATE": str(tmp_path), "NTIER_NAME": "ntiernothing"}
        return subprocess.run(argv, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL).stderr

    assert purge().endswith("give them back first:  make down TARGET=hcloud\n")
    ledger.give_back(1)
    assert "still rented" not in purge()
