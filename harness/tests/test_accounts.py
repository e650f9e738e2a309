"""What an account holds, and what its provider is asked and answers: all that needs no provider."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ntier_analysis.contracts.nodes import Node
from ntier_harness import node_commands
from ntier_harness.errors import RequestError, WorkError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths
from ntier_harness.runner import Runner
from ntier_harness.targets import asking, clearing, make_target, openstack_account, rented
from ntier_harness.targets.account import OWNER, Hardware
from ntier_harness.targets.hcloud_account import HcloudAccount
from ntier_harness.targets.openstack_account import OpenstackAccount
from ntier_harness.targets.rental import Offer
from ntier_harness.targets.terraform import Terraform

from .conftest import QuietScreen
from .fake_cloud import FakeCloud, Fault
from .fake_hcloud import ADDRESS_PRICE, TYPES, FakeHcloud
from .fake_openstack import PASSWORD, FakeOpenstack

ROOT = Path(__file__).resolve().parents[2]
OFFER = ROOT / "terraform/targets/hcloud/machines.json"


ACCOUNTS = {FakeHcloud: HcloudAccount, FakeOpenstack: OpenstackAccount}


@pytest.fixture(params=list(ACCOUNTS), ids=lambda fake: fake.target)
def fake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    with request.param() as cloud:
        for name, value in cloud.environment.items():
            monkeypatch.setenv(name, value)
        yield cloud


@pytest.fixture
def hetzner(monkeypatch: pytest.MonkeyPatch):
    with FakeHcloud() as cloud:
        for name, value in cloud.environment.items():
            monkeypatch.setenv(name, value)
        yield cloud


def account(fake: FakeCloud, waits: list[float] | None = None) -> HcloudAccount | OpenstackAccount:
    return ACCOUNTS[type(fake)]((waits if waits is not None else []).append)


def test_an_account_finds_and_removes_one_owners_things_over_several_pages(fake: FakeCloud) -> None:
    fake.populate("theirs", 1)
    theirs = fake.count()
    number = fake.populate("ours", 60)
    waits: list[float] = []
    things = account(fake).find("ours")
    assert [t.kind for t in things[:1]] == ["machine"]
    assert len(things) == number
    assert {t.expires_s for t in things} == {1000}  # also of what has no labels of its own
    assert {t.owner for t in account(fake).find()} == {"ours", "theirs"}
    account(fake, waits).remove(things)
    assert fake.count() == theirs
    account(fake).remove(things)  # what is gone already is no error
    assert not waits


@pytest.mark.parametrize("kind_", ["rate", "error"])
def test_an_account_waits_while_the_provider_is_busy_or_broken(fake: FakeCloud, kind_: str) -> None:
    fake.populate("ours", 1)
    waits: list[float] = []
    fake.faults = [Fault(kind_, "GET", times=2), Fault(kind_, "DELETE", times=3)]
    ours = account(fake, waits)
    ours.remove(ours.find())
    assert fake.count() == {}
    assert waits == [0.5, 1, 0.5, 1, 2]


def test_a_machine_that_cannot_be_deleted_does_not_keep_the_others(fake: FakeCloud) -> None:
    """As one of which a snapshot is being made; each costs by the hour."""
    fake.populate("ours", 3)
    ours = account(fake)
    fake.faults = [Fault("error", "DELETE", times=asking.TRIES)]
    with pytest.raises(WorkError, match=r"DELETE .*servers/"):
        ours.remove(ours.find("ours"))
    assert fake.count()["servers"] == 1
    ours.remove(ours.find("ours"))
    assert fake.count() == {}


def test_a_provider_that_does_not_answer_says_nothing_of_machines(tmp_path, monkeypatch, capsys) -> None:
    """They were called missing."""
    monkeypatch.setenv("HCLOUD_TOKEN", "x")
    monkeypatch.setenv("HCLOUD_ENDPOINT", "http://127.0.0.1:1/v1")
    monkeypatch.setattr(asking, "FIRST_WAIT_S", 0.0)
    runner, paths = Runner(), Paths(ROOT, tmp_path, tmp_path / "results", "hcloud")
    paths.place.mkdir()
    node = Node(name="web1", tier="web", index=1, role="web", address="10.98.1.1", node_type="normal")
    paths.nodes.write_text(json.dumps([node.model_dump()]))
    lab = Lab(runner, paths, make_target("hcloud", runner, paths, None), QuietScreen())
    assert lab.target.owner, "who made nodes has a name"
    node_commands.status(lab, as_json=False)
    said = capsys.readouterr().out.splitlines()
    assert said[0].split()[:3] == ["web1", "10.98.1.1", "unknown"]
    assert said[1].startswith("whether they are there is not known: hcloud: GET /servers: ")
    node_commands.status(lab, as_json=True)
    assert "GET /servers" in json.loads(capsys.readouterr().out)["unanswered"]


def test_an_account_that_stays_broken_is_an_error_without_a_secret(fake: FakeCloud) -> None:
    fake.faults = [Fault("error", "GET", times=99)]
    with pytest.raises(WorkError) as error:
        account(fake).find()
    assert str(error.value) == {
        "hcloud": "hcloud: GET /servers: 500 something went wrong (server_error)",
        "openstack": "openstack: GET compute/servers/detail: 500 Unexpected API Error.",
    }[fake.target]  # fmt: skip


def test_of_another_owner_at_work_nothing_is_removed_however_late(fake, tmp_path, monkeypatch, capsys) -> None:
    """A campaign may take days, and a machine that nobody speaks to shuts down."""
    monkeypatch.setattr(clearing, "SETTLE_S", 0.0)
    number = fake.populate("theirs", 2)
    there = fake.count()

    def remove() -> None:
        runner, paths = Runner(), Paths(ROOT, tmp_path, tmp_path / "results", fake.target)
        lab = Lab(runner, paths, make_target(fake.target, runner, paths, None), QuietScreen())
        assert node_commands.leftovers(lab, remove=True, owner=None, as_json=False) == 0

    remove()
    assert capsys.readouterr().out.count("of theirs, not ours, past its time, but its owner's machines run") == number
    assert fake.count() == there
    for machine in fake.resources["servers"].values():
        fake.switch_off(machine)
    remove()
    assert fake.count() == {}


def test_a_snapshot_and_a_machine_type_say_for_which_processor_they_are(hetzner: FakeHcloud) -> None:
    hetzner.populate("ours", 1)
    ours = account(hetzner)
    machine = ours.find("ours")[0]
    ours.shut_down(machine, at_once=True)
    ours.take_snapshot(machine, "web", {OWNER: "ours"})
    assert [s.architecture for s in ours.snapshots("ours")] == ["x86"]
    assert ours.hardware()["ccx13"] == Hardware(80.0, "x86")


def test_a_token_that_no_header_takes_is_not_shown(hetzner, tmp_path, monkeypatch) -> None:
    """As from a file with Windows' ends of lines; Python's error about it has the whole header."""
    monkeypatch.setenv("HCLOUD_TOKEN", "secret" * 10 + "\r")
    waits: list[float] = []
    with pytest.raises(WorkError, match="hcloud: GET /servers: HCLOUD_TOKEN has a sign in it") as error:
        account(hetzner, waits).find()
    assert (waits, "secret" in str(error.value)) == ([], False)
    with pytest.raises(RequestError, match="hcloud: HCLOUD_TOKEN has a blank, a line's end or another sign") as wrong:
        renting(tmp_path).require_privileges()
    assert "secret" not in str(wrong.value)


def renting(folder: Path, file: Path | None = None) -> rented.Rented:
    return make_target("hcloud", Runner(), Paths(ROOT, folder, folder / "results", "hcloud"), None, file and str(file))


@pytest.mark.parametrize(
    ("given", "networks"),
    [
        ("203.0.113.0/24, 198.51.100.7", ["203.0.113.0/24", "198.51.100.7/32"]),
        ("203.0.113.5/24", "NTIER_CONTROLLER: '203.0.113.5/24' is no IPv4 network (203.0.113.5/24 has host bits set)"),
        ("pc1.example.net", "NTIER_CONTROLLER: 'pc1.example.net' is no IPv4 network"),
        ("203.0.113.0/24,", "NTIER_CONTROLLER: '' is no IPv4 network"),
        ("2001:db8::/32", "NTIER_CONTROLLER: '2001:db8::/32' is no IPv4 network"),
    ],
)
def test_who_may_log_in_is_a_list_of_networks_before_anything_is_rented(tmp_path, monkeypatch, given, networks) -> None:
    monkeypatch.setenv("NTIER_CONTROLLER", given)
    monkeypatch.setenv("HCLOUD_TOKEN", "x")
    target = renting(tmp_path)
    if isinstance(networks, list):
        target.require_privileges()
        assert target.controllers() == networks
        return
    with pytest.raises(RequestError) as error:
        target.require_privileges()
    assert str(error.value).startswith(networks)


@pytest.mark.parametrize("name", ["poll_intervall", "labels", "prefix"])
def test_an_offer_sets_only_what_is_the_providers(tmp_path: Path, spec, name: str) -> None:
    """Without our labels, `down` would find nothing; of a variable that it does not have Terraform only warns."""
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(json.loads(OFFER.read_text()) | {"options": {name: "x"}}))
    with pytest.raises(
        RequestError, match=rf"machines: .*mine.json: options: '{name}' is unknown.*; allowed are network"
    ):
        renting(tmp_path, file).check(spec(target="hcloud", topo="1/1/1/1P"))


def test_another_workspace_of_terraform_is_not_taken(tmp_path: Path, monkeypatch) -> None:
    """Its state would be another file, in which nothing is to be destroyed."""
    (tmp_path / "terraform/targets/hosts").mkdir(parents=True)
    (tmp_path / "terraform/targets/hosts/main.tf").write_text(
        'terraform {\n backend "local" {}\n}\nresource "terraform_data" "one" {}\noutput "nodes" {\n value = []\n}\n'
    )
    monkeypatch.setenv("TF_WORKSPACE", "mine")
    monkeypatch.setenv("TF_CLI_ARGS_apply", "-destroy")
    paths = Paths(tmp_path, tmp_path / "state", tmp_path, "hosts")
    paths.place.mkdir(parents=True)
    terraform, log = Terraform(Runner(), paths), tmp_path / "log"
    if not Runner().has(terraform.program):
        pytest.skip("Terraform is not installed")
    terraform.apply({}, log)
    assert '"terraform_data"' in terraform._state.read_text()
    terraform.destroy(log)
    assert '"terraform_data"' not in terraform._state.read_text()


@pytest.mark.parametrize(
    ("fake", "variable", "says"),
    [
        (FakeHcloud, "HCLOUD_TOKEN", r"401 unable to authenticate \(unauthorized\); is HCLOUD_TOKEN right"),
        (FakeOpenstack, "OS_PASSWORD", r"401 The request you have made requires authentication.*; are the credentials"),
    ],
    indirect=["fake"],
)
def test_wrong_credentials_are_named_as_the_likely_cause_and_not_shown(fake, variable, says, monkeypatch) -> None:
    monkeypatch.setenv(variable, "secret" * 10)
    with pytest.raises(WorkError, match=says) as error:
        account(fake).find()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("fake", "variable"), [(FakeHcloud, "HCLOUD_ENDPOINT"), (FakeOpenstack, "OS_AUTH_URL")], indirect=["fake"]
)
def test_a_provider_that_does_not_answer_is_an_error(fake, variable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v3")
    with pytest.raises(WorkError, match=rf"{fake.target}: GET .*servers.*: .*(refused|[Uu]nable)"):
        account(fake).find()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("clouds: [", "openstack: OS_CLOUD=lab names a cloud of a clouds.yaml, and no clouds.yaml was found"),
        (None, "openstack: OS_CLOUD=lab names a cloud of a clouds.yaml, and no clouds.yaml was found"),
        ("clouds: [lab]", "clouds.yaml has not the form of a clouds.yaml ("),
    ],
)
def test_a_clouds_yaml_that_cannot_be_read_is_said_to_be_so(tmp_path, monkeypatch, text, says) -> None:
    """As by root, who has another home. openstacksdk would miss an address then."""
    monkeypatch.setattr("openstack.config.loader.CONFIG_FILES", [])
    monkeypatch.setenv("OS_CLOUD", "lab")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "lab" / "clouds.yaml"))
    (tmp_path / "lab").mkdir()
    if text is not None:
        (tmp_path / "lab" / "clouds.yaml").write_text(text)
    with pytest.raises(WorkError) as error:
        OpenstackAccount(lambda _: None).find("us")
    assert says in str(error.value)


def test_a_cloud_of_clouds_yaml_is_found_and_one_that_is_not_there_is_named(tmp_path, monkeypatch) -> None:
    with FakeOpenstack() as cloud:
        cloud.populate("ours", 1)
        given = cloud.environment
        auth = {"auth_url": given["OS_AUTH_URL"], "username": "ann", "password": PASSWORD, "project_name": "lab",
                "user_domain_name": "Default", "project_domain_name": "Default"}  # fmt: skip
        clouds = {"clouds": {"lab": {"auth": auth, "region_name": "RegionOne"}}}
        (tmp_path / "clouds.yaml").write_text(json.dumps(clouds))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
        monkeypatch.setenv("OS_CLOUD", "lab")
        assert openstack_account.missing() == []
        assert {t.owner for t in OpenstackAccount(lambda _: None).find()} == {"ours"}
        monkeypatch.setenv("OS_CLOUD", "another")
        with pytest.raises(WorkError, match="openstack: Cloud another was not found"):
            OpenstackAccount(lambda _: None).find()


def test_what_the_environment_lacks_of_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OS_CLOUD", "OS_AUTH_URL", *openstack_account.WHO):
        monkeypatch.delenv(name, raising=False)
    assert openstack_account.missing() == ["OS_CLOUD"]
    monkeypatch.setenv("OS_AUTH_URL", "http://x/v3")
    assert openstack_account.missing() == ["OS_APPLICATION_CREDENTIAL_ID"]
    monkeypatch.setenv("OS_USERNAME", "ann")
    assert openstack_account.missing() == []


def test_prices_of_today_are_with_the_address(hetzner: FakeHcloud) -> None:
    per_hour = HcloudAccount(lambda _: None).prices("fsn1")
    assert per_hour["ccx13"] == pytest.approx(TYPES["ccx13"][2] + ADDRESS_PRICE)
    assert per_hour == pytest.approx({t.type: t.price_per_hour for t in Offer.model_validate_json(OFFER.read_text())
                                   .node_types.values()})  # fmt: skip
