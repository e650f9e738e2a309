"""What a trial must have follows from what was started, not from what is there: a file that is missing is no excuse."""

import json
import re
import shutil

import pytest
import zstandard
from checked import Checks
from ntier_analysis.contracts import Manifest, Outcome, implied
from ntier_analysis.contracts.system import Interaction
from ntier_analysis.errors import DataError
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.registry import registered, validate
from synthetic import Spec, Truth, write_trial

SPEC = Spec(
    600, Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012}), phases=(20.0, 40.0, 5.0), seal=False
)
PLUG_IN = {"jmeter": {"plan": "board.jmx", "properties": {"ntier.mix": "browse_only.csv"}}}
OWN_PLAN = {"jmeter": {"plan": "own.jmx", "own_thread_group": True, "properties": {}}}
OTHER = {"parameters": {"requests": "requests.csv"}}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A trial whose manifest names its system, as the harness writes it: interactions say whether they write."""
    folder = write_trial(tmp_path_factory.mktemp("raw"), SPEC)
    names = ["StoriesOfTheDay", "StoreComment", "StoreModerateLog"]
    system = implied.system(600).model_copy(
        update={"interactions": [Interaction(name=n, writes=n.startswith("Store")) for n in names]}
    )
    Manifest.read(folder).model_copy(update={"system": system}).write(folder)
    return folder


@pytest.fixture
def trial(written, tmp_path):
    return shutil.copytree(written, tmp_path / "trial")


def told(folder, request):
    (folder / "config/driver.json").write_text(json.dumps(request))


def rename(folder, system):
    Manifest.read(folder).model_copy(update={"system": system}).write(folder)


def checks(folder):
    validity = validate(RawTrial(folder))
    return validity, {c.id: c for c in validity.checks}


def without(path, *columns):
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    kept = [i for i, name in enumerate(header) if name not in columns]
    path.write_text("".join(",".join(row[i] for i in kept) + "\n" for row in (header, *rows)))


def without_pictures(path):
    lines = zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode().splitlines()
    kept = [line for line in lines if ".gif" not in line and ".png" not in line and ".jpg" not in line]
    assert len(kept) < len(lines)
    path.write_bytes(zstandard.ZstdCompressor().compress(("\n".join(kept) + "\n").encode()))


def without_sent_to(path):
    text = zstandard.ZstdDecompressor().decompress(path.read_bytes()).decode()
    assert " app1 " in text
    path.write_bytes(zstandard.ZstdCompressor().compress(text.replace(" app1 ", " - ").encode()))


def test_a_trial_of_a_named_system_is_valid(trial):
    told(trial, PLUG_IN)
    validity, _ = checks(trial)
    assert validity.valid, validity.reasons


FAULTS = {
    "gc.log": ("G3.gc", lambda f: (f / "clients/client1/gc.log").unlink()),
    "thinks": ("G1", lambda f: (f / "clients/client1/thinks.csv.zst").unlink()),
    "users": ("G4", lambda f: (f / "clients/client1/users.csv").unlink()),
    "content": ("E2", lambda f: without(f / "clients/client1/progress.csv", "content_checked", "content_wrong")),
    "access log": ("C5", lambda f: (f / "nodes/web1/logs/access.log.zst").unlink()),
    "pictures": ("C5", lambda f: without_pictures(f / "nodes/web1/logs/access.log.zst")),
    "mix": ("M1", lambda f: (f / "config/browse_only.csv").unlink()),
}


@pytest.mark.parametrize("request_lost", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_missing_invalidates(trial, fault, request_lost):
    if not request_lost:
        told(trial, PLUG_IN)
    id_, remove = FAULTS[fault]
    remove(trial)
    assert Checks(trial).invalidate(id_)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_faults_invalidate_a_trial_without_a_system(trial, fault):
    rename(trial, None)
    id_, remove = FAULTS[fault]
    remove(trial)
    assert Checks(trial).invalidate(id_)


def test_a_log_that_sends_nothing_on_is_told_as_without_a_system(trial):
    """One node cannot be told from a load that is too low for it."""
    told(trial, PLUG_IN)
    without_sent_to(trial / "nodes/web1/logs/access.log.zst")
    named = Checks(trial)
    assert named["O5"].outcome is Outcome.UNDECIDABLE
    assert "app1 0" in named["O5"].detail
    rename(trial, None)
    assert named["O5"] == Checks(trial)["O5"]


def test_another_plan_of_jmeter_must_log_its_pauses_but_checks_no_content(trial):
    told(trial, OWN_PLAN)
    (trial / "clients/client1/gc.log").unlink()
    without(trial / "clients/client1/progress.csv", "content_checked", "content_wrong")
    by_id = Checks(trial)
    assert by_id["G3.gc"].required
    assert by_id["G3.gc"].outcome is Outcome.UNDECIDABLE
    assert not by_id["E2"].required


def test_another_program_has_no_collector_of_garbage(trial):
    told(trial, OTHER)
    (trial / "clients/client1/gc.log").unlink()
    by_id = Checks(trial)
    assert by_id["G3.gc"].outcome is Outcome.PASS
    assert "another program" in by_id["G3.gc"].detail


def test_users_who_walk_no_table_have_no_mix(trial):
    told(trial, OTHER)
    (trial / "config/browse_only.csv").unlink()
    validity, by_id = checks(trial)
    assert [by_id[i].outcome for i in ("M1", "M2", "M3")] == [Outcome.PASS] * 3
    assert "names no table" in by_id["M1"].detail
    assert validity.valid, validity.reasons


def test_one_database_of_a_system_that_promises_no_rows_has_no_replicas(trial):
    told(trial, OTHER)
    system = Manifest.read(trial).system
    rename(trial, system.model_copy(update={"interactions": [Interaction(name="StoriesOfTheDay", writes=True)]}))
    (trial / "config/browse_only.csv").unlink()
    validity, by_id = checks(trial)
    assert by_id["R2"].outcome is Outcome.PASS
    assert "one node" in by_id["R2"].detail
    assert validity.valid, validity.reasons


def test_a_systems_own_collector_is_read_and_must_be_there(trial):
    told(trial, PLUG_IN)
    manifest = Manifest.read(trial)
    started = {**manifest.collectors, "web1": [*manifest.collectors["web1"], "till_status"]}
    manifest.model_copy(update={"collectors": started}).write(trial)
    assert Checks(trial).invalidate("C1")
    start, end = RawTrial(trial).run
    seconds = range(int(start) - 1, int(end) + 2)
    file = trial / "nodes/web1/till_status.csv"
    file.write_text("t_s,tills_used,tills_limit\n" + "".join(f"{t},2,4\n" for t in seconds))
    validity, _ = checks(trial)
    assert validity.valid, validity.reasons
    file.write_text("t_s,tills_used,tills_limit\n" + "".join(f"{t},2,4\n" for t in seconds if t % 7))
    assert "collector_gap" in Checks(trial).invalidate("C1", "C1.gap")


def test_a_first_tier_without_apache_keeps_no_log(trial):
    told(trial, OTHER)
    manifest = Manifest.read(trial)
    collectors = manifest.collectors | {"web1": ["sysstat"]}
    manifest.model_copy(update={"collectors": collectors}).write(trial)
    (trial / "nodes/web1/logs/access.log.zst").unlink()
    by_id = Checks(trial)
    assert by_id["C5"].outcome is Outcome.PASS
    assert "no access log" in by_id["C5"].detail


def test_other_interactions_promise_no_picture(trial):
    told(trial, PLUG_IN)
    system = Manifest.read(trial).system
    rename(trial, system.model_copy(update={"interactions": [Interaction(name="StoriesOfTheDay")]}))
    without_pictures(trial / "nodes/web1/logs/access.log.zst")
    by_id = Checks(trial)
    assert by_id["C5"].outcome is Outcome.PASS
    assert "picture" in by_id["C5"].detail


@pytest.mark.parametrize("jmeter", [3, {"properties": []}])
def test_a_request_that_is_no_request_decides_nothing(trial, jmeter):
    told(trial, {"jmeter": jmeter})
    by_id = Checks(trial)
    assert by_id.invalidate("G3.gc")
    assert "driver.json" in by_id["G3.gc"].detail


def test_first_user_is_the_first_worker_of_another_driver(trial):
    request = trial / "clients/client1/driver.json"
    assert RawTrial(trial).first_user("client1") == 0
    request.write_text(json.dumps({"first_worker": 300}))
    assert RawTrial(trial).first_user("client1") == 300
    (trial / "clients/client1/ntier.properties").write_text("ntier.first_user=200\n")
    assert RawTrial(trial).first_user("client1") == 200


@pytest.mark.parametrize("first", [-1, "a", 1.5, True, 10**9])
def test_a_first_worker_that_is_no_number_of_one_is_an_error(trial, first):
    (trial / "clients/client1/driver.json").write_text(json.dumps({"first_worker": first}))
    with pytest.raises(DataError, match="first_worker is"):
        RawTrial(trial).first_user("client1")


@pytest.mark.parametrize("check", registered(), ids=lambda check: check.id)
def test_no_title_names_a_tier_that_another_system_lacks(check):
    words = {*implied.TIERS, "application", "web server", "middleware's"}
    assert not [word for word in words if re.search(rf"\b{re.escape(word)}\b", check.title)], check.title
