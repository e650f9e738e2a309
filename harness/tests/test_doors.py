# ruff: noqa: E501 (tables: a line per case)
"""Every file that `ntier` reads, with all kinds of bad input: exit code 2 and one clear line before anything is touched.

What the kinds are, and how to run more of the random ones: setup/doors.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import doors
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ntier_harness import cli

from .checkout import add_systems

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parents[2]
MIX = (ROOT / "workloads/mixes/browse_only.csv").read_text()
CAMPAIGN = {
    "topologies": ["1/1/1/1M", "1/1/1/2M"], "mixes": ["browse_only"], "users": ["1000", "3000"], "phases": "smoke", "reps": "2",
    "include": [{"topology": "1/2/1/1P", "set": {"web_max_workers": "60"}}], "exclude": [{"topology": "1/1/1/2M"}], "name": "x",
}  # fmt: skip
INVENTORY = {
    "user": "root", "hosts": [{"address": f"10.0.0.{i}", "port": 22} for i in range(1, 6)],
    "apt_sources": {"db": ["deb http://x trixie main"]},
}  # fmt: skip
PLAN = ("plan", "--topo", "1/1/1/1M", "--users", "1000")


@dataclass(frozen=True)
class Door:
    """A file below the checkout, and the request that reads it; `{at}` is the checkout."""

    file: str
    arguments: tuple[str, ...] = PLAN


DOORS = {
    "campaign": Door("campaign.yaml", ("plan", "--spec", "{at}/campaign.yaml")),
    "hosts": Door("lab.yaml", (*PLAN, "--target", "hosts", "--hosts", "{at}/lab.yaml")),
    "phases": Door("workloads/phases.yaml"),
    "mix": Door("workloads/mixes/mine.csv", (*PLAN, "--mix", "mine")),
    "description": Door("workloads/mixes/mine.yaml", (*PLAN, "--mix", "mine")),
    "authors": Door("workloads/mixes/authors/mine.csv", (*PLAN, "--mix", "mine")),
    "system": Door("systems/rubbos/system.yaml"),
    "node_types": Door("terraform/modules/topology/node_types.json"),
}
YAMLS = ("campaign", "hosts", "phases", "description", "system")
TABLES = ("mix", "authors")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout as far as a request reads it."""
    root = tmp_path_factory.mktemp("checkout") / "good"
    for folder in ("workloads/mixes/authors", "terraform/modules/topology", "terraform/targets/hosts"):
        (root / folder).mkdir(parents=True)
    for file in (
        "workloads/phases.yaml",
        "workloads/rubbos.jmx",
        "workloads/mixes/browse_only.csv",
        DOORS["node_types"].file,
    ):
        shutil.copy(ROOT / file, root / file)
    add_systems(root)
    (root / "campaign.yaml").write_text(yaml.safe_dump(CAMPAIGN))
    (root / "lab.yaml").write_text(yaml.safe_dump(INVENTORY))
    (root / "workloads/mixes/mine.csv").write_text(MIX)
    (root / "workloads/mixes/authors/mine.csv").write_text(MIX)
    description = {"think_time_s": 7, "slo_ms": 1000, "author_table": "authors/mine.csv", "author_share": 0.1}
    (root / "workloads/mixes/mine.yaml").write_text(yaml.safe_dump(description))
    return root


@contextmanager
def spoilt(good: Path, name: str, content: bytes | str | None = None) -> Iterator[Path]:
    """A checkout without the door's file, or with this content."""
    with TemporaryDirectory(dir=good.parent) as folder:
        at = Path(shutil.copytree(good, Path(folder) / "at", ignore=shutil.ignore_patterns("ansible")))
        (at / "ansible").symlink_to(good / "ansible")  # forty folders that no door reads
        (at / DOORS[name].file).unlink()
        if content is not None:
            (at / DOORS[name].file).write_bytes(content.encode() if isinstance(content, str) else content)
        yield at


def ask(name: str, at: Path) -> doors.Done:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NTIER_ROOT", str(at))
        patch.setenv("NTIER_STATE", str(at / "state"))
        return doors.call(cli.main, *(a.format(at=at) for a in DOORS[name].arguments))


@pytest.mark.parametrize("name", DOORS)
def test_the_good_file_is_taken_also_with_a_byte_order_mark(good, name):
    with spoilt(good, name, b"\xef\xbb\xbf" + (good / DOORS[name].file).read_bytes()) as at:
        done = ask(name, at)
        assert done.code == 0, done


@pytest.mark.parametrize("kind", doors.NO_FILES)
@pytest.mark.parametrize("name", DOORS)
def test_only_a_regular_file_is_read(good, name, kind):
    if (name, kind) in (("description", "missing"), ("description", "dangling"), ("description", "loop")):
        pytest.skip("a mix needs no description")
    with spoilt(good, name) as at:
        doors.NO_FILES[kind](at / DOORS[name].file)
        doors.refused(ask(name, at), "mine" if name == "mix" else Path(DOORS[name].file).name)
        assert not (at / "state").exists()


@pytest.mark.parametrize("kind", doors.NO_TEXTS)
@pytest.mark.parametrize("name", DOORS)
def test_what_is_no_such_text_is_refused(good, name, kind):
    if name == "description" and kind in ("empty", "blank", "comments"):
        pytest.skip("a description may say nothing")
    with spoilt(good, name, doors.NO_TEXTS[kind]((good / DOORS[name].file).read_bytes())) as at:
        doors.refused(ask(name, at), Path(DOORS[name].file).name)


@pytest.mark.parametrize("kind", doors.DOCUMENTS)
@pytest.mark.parametrize("name", [*YAMLS, "node_types"])
def test_a_document_of_another_kind_is_refused(good, name, kind):
    if (name, kind) == ("description", "null"):
        pytest.skip("a description may say nothing")
    with spoilt(good, name, doors.DOCUMENTS[kind](b"")) as at:
        doors.refused(ask(name, at), Path(DOORS[name].file).name)


@pytest.mark.parametrize("name", [*YAMLS, "node_types"])
@doors.examples(60)
@given(data=st.data())
def test_a_spoilt_document_is_refused_or_taken(good, name, data):
    content = (good / DOORS[name].file).read_bytes()
    other = doors.spoilt_document(yaml.safe_load(content)).map(lambda document: json.dumps(document).encode())
    with spoilt(good, name, data.draw(st.one_of(other, other, doors.spoilt_bytes(content)))) as at:
        doors.orderly(ask(name, at), 0)


@pytest.mark.parametrize("name", TABLES)
@doors.examples(60)
@given(data=st.data())
def test_a_spoilt_mix_is_refused_or_taken(good, name, data):
    content = (good / DOORS[name].file).read_bytes()
    with spoilt(good, name, data.draw(st.one_of(doors.spoilt_csv(content), doors.spoilt_bytes(content)))) as at:
        doors.orderly(ask(name, at), 0)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("StoriesOfTheDay,Browse,0.5\nBrowse,EndOfSession,1", "sum to 0.5; allowed are 0.9..1.2"),
        ("StoriesOfTheDay,Browse,0.8\nStoriesOfTheDay,EndOfSession,0.8\nBrowse,EndOfSession,1", "sum to 1.6"),
        ("StoriesOfTheDay,EndOfSession,-1", ":2: probability is '-1'; allowed is a number in 0..1"),
        ("StoriesOfTheDay,EndOfSession,nan", ":2: probability is 'nan'"),
        ("StoriesOfTheDay,EndOfSession,1e999", ":2: probability is '1e999'"),
        ("StoriesOfTheDay,EndOfSession,one", ":2: probability is 'one'"),
        ("StoryOfTheDay,EndOfSession,1", "state: 'StoryOfTheDay' is unknown (did you mean 'StoriesOfTheDay'?)"),
        ("StoriesOfTheDay,Browse,1", "leads to 'Browse', which has no row of its own"),
        ("StoriesOfTheDay,Back,0.5\nStoriesOfTheDay,Back,0.5", ":3: 'StoriesOfTheDay' to 'Back' is there twice"),
        ("Back,StoriesOfTheDay,1", ":2: Back is a target only"),
        ("StoriesOfTheDay,EndOfSession", ":2: expected from,to,probability"),
        ("", "no transitions"),
    ],
)
def test_a_wrong_mix_is_one_clear_error(good, name, rows, says):
    with spoilt(good, name, f"from,to,probability\n{rows}\n") as at:
        doors.refused(ask(name, at), "mine.csv", says)


@pytest.mark.parametrize(
    ("key", "value"),
    [("think_time_s", 0), ("think_time_s", -7), ("think_time_s", float("nan")), ("think_time_s", "soon"), ("slo_ms", 0), ("author_share", 2),
     ("author_share", float("nan")), ("author_table", "../../phases.yaml"), ("author_table", 3), ("thinktime", 7)],
)  # fmt: skip
def test_an_impossible_description_of_a_mix_is_named(good, key, value):
    with spoilt(
        good, "description", yaml.safe_dump({"author_table": "authors/mine.csv", "author_share": 0.1, key: value})
    ) as at:
        doors.refused(ask("description", at), "mine.yaml", key)


@pytest.mark.parametrize("option", ["--users", "--scale", "--reps", "--above"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "1e9", "", " ", "½", "1" * 5000])
def test_an_impossible_number_is_refused(good, option, value):
    if value == "":
        pytest.skip("as if it was not given")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NTIER_ROOT", str(good))
        patch.setenv("NTIER_STATE", str(good / "state"))
        arguments = {"--users": "1000"} | {option: value}
        doors.refused(
            doors.call(cli.main, "plan", "--topo", "1/1/1/1M", *(p for pair in arguments.items() for p in pair)),
            option[2:],
        )


@doors.examples(40)
@given(data=st.data())
def test_a_spoilt_record_of_a_search_is_one_clear_error_or_taken(good, data):
    decided = [{"users": 1000, "reason": "low", "why": "x"}, {"users": None, "reason": "precise", "why": "y"}]
    record = {
        "schema_version": 1,
        "search": "capacity",
        "grid": [1000, 3000],
        "precision": 0.05,
        "most": 4,
        "decisions": decided,
    }
    content = st.one_of(
        doors.spoilt_document(record).map(lambda r: json.dumps(r).encode()),
        doors.spoilt_bytes(json.dumps(record).encode()),
    )
    with TemporaryDirectory(dir=good.parent) as results, pytest.MonkeyPatch.context() as patch:
        sweep = Path(results) / "raw" / "1-1-1-1M.browse_only.shardingsphere"
        sweep.mkdir(parents=True)
        (sweep / "search.json").write_bytes(data.draw(content))
        patch.setenv("NTIER_ROOT", str(good))
        patch.setenv("NTIER_STATE", str(good / "state"))
        request = ("plan", "--topo", "1/1/1/1M", "--users", "1000,3000", "--search", "capacity", "--results", results)
        done = doors.call(cli.main, *request)
        assert done.code in (0, 1, 2), done
        assert done.code == 0 or (done.err.startswith("error: ") and done.err.count("\n") == 1), done
