"""What can be said of the system without nodes: its content, its plan and its tables fit together."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from ntier_harness.errors import RequestError
from ntier_harness.request import make_spec
from ntier_harness.settings import values

SYSTEM = Path(__file__).resolve().parents[1]
TABLES = sorted((SYSTEM / "load/mixes").rglob("*.csv"))
EXPORT = "{http://www.mediawiki.org/xml/export-0.11/}"


def generated(folder: Path, seed: int) -> Path:
    call = [sys.executable, SYSTEM / "data/generate.py", "--profile", "tiny", "--seed", str(seed), "--out", folder]
    subprocess.run(call, check=True)
    return folder


def test_the_content_is_that_of_its_seed(tmp_path):
    first, again, other = (generated(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert (first / "dump.xml").read_bytes() == (again / "dump.xml").read_bytes()
    assert (first / "dump.xml").read_bytes() != (other / "dump.xml").read_bytes()


def test_every_link_of_an_article_leads_to_one_and_data_json_counts_what_is_there(tmp_path):
    folder = generated(tmp_path, 1)
    data = json.loads((folder / "data.json").read_text())
    pages = ET.parse(folder / "dump.xml").getroot().findall(f"{EXPORT}page")
    titles = {page.findtext(f"{EXPORT}title") for page in pages}
    texts = [text.text or "" for page in pages for text in page.iter(f"{EXPORT}text")]
    linked = {link.split("]]")[0].split("|")[0].lstrip(":") for text in texts for link in text.split("[[")[1:]}
    assert linked <= titles
    assert (data["pages"], data["revisions"]) == (len(pages), len(texts))
    assert data["article"] in titles


def test_a_revision_keeps_what_was_there_before(tmp_path):
    pages = ET.parse(generated(tmp_path, 1) / "dump.xml").getroot().findall(f"{EXPORT}page")
    lengths = [[len(text.text or "") for text in page.iter(f"{EXPORT}text")] for page in pages]
    assert any(len(revisions) > 2 for revisions in lengths)
    assert all(revisions == sorted(revisions) for revisions in lengths)


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem + path.parent.name)
def test_each_state_of_a_table_is_a_sampler_and_an_interaction(table):
    with table.open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    plan = {e.get("testname") for e in ET.parse(SYSTEM / "load/mediawiki.jmx").getroot().iter("HTTPSamplerProxy")}
    known = yaml.safe_load((SYSTEM / "system.yaml").read_text())["interactions"]
    states = {row["from"] for row in rows} | {row["to"] for row in rows} - {"EndOfSession", "Back"}
    assert states <= plan
    assert states <= set(known)
    for state in {row["from"] for row in rows}:
        assert sum(float(r["probability"]) for r in rows if r["from"] == state) == pytest.approx(1)


@pytest.mark.parametrize(
    ("thread", "first_user", "account"), [(1, 0, 1), (1000, 0, 1000), (1, 1000, 1), (700, 2500, 200)]
)
def test_each_user_has_an_account_however_many_there_are(thread, first_user, account):
    sys.path.insert(0, str(SYSTEM / "data"))
    import generate

    texts = [e.text or "" for e in ET.parse(SYSTEM / "load/mediawiki.jmx").getroot().iter("stringProp")]
    (name,) = (text for text in texts if text.startswith("User "))
    formula = re.fullmatch(r"User \$\{__jexl3\((.*)\)\}", name)[1]
    accounts = int(re.search(r"__P\(ntier\.accounts,(\d+)\)", formula)[1])
    assert accounts <= min(profile.accounts for profile in generate.PROFILES.values())
    known = {"__threadNum": thread, "__P(ntier.first_user,0)": first_user, f"__P(ntier.accounts,{accounts})": accounts}
    for function, value in known.items():
        formula = formula.replace(f"${{{function}}}", str(value))
    assert eval(formula) == account


@pytest.mark.parametrize(
    ("topo", "children", "limit"), [("1/1/1M", 5, 151), ("1/4/1M", 50, 440), ("1/2/1/1P", 40, 200)]
)
def test_the_dbms_accepts_the_connections_of_all_processes(topo, children, limit):
    asked = {"system": "mediawiki", "topo": topo, "set": [f"app_children={children}"]}
    assert values(make_spec(asked, SYSTEM.parents[1], cores=8))["db_max_connections"] == limit


def test_fewer_connections_than_processes_are_refused():
    asked = {"system": "mediawiki", "topo": "1/4/1M", "set": ["app_children=50", "db_max_connections=151"]}
    with pytest.raises(RequestError, match="151, but 200 processes of PHP-FPM"):
        make_spec(asked, SYSTEM.parents[1], cores=8)


def test_connections_that_postgresql_keeps_for_its_superuser_serve_no_process():
    asked = {"system": "mediawiki", "topo": "1/2/1P", "set": ["app_children=30"]}
    assert values(make_spec(asked | {"set": [*asked["set"], "db_max_connections=63"]}, SYSTEM.parents[1], cores=8))
    with pytest.raises(RequestError, match="keeps 3 for its superuser; allowed are 63 or more"):
        make_spec(asked | {"set": [*asked["set"], "db_max_connections=62"]}, SYSTEM.parents[1], cores=8)


def test_readers_of_both_mixes_are_the_same():
    one, other = (
        [line for line in (SYSTEM / f"load/mixes/{name}.csv").read_text().splitlines() if not line.startswith("#")]
        for name in ("browse_only", "read_write")
    )
    assert one == other


def test_saves_have_the_weight_that_their_source_gives_them():
    """Share of editors (read_write.yaml) times their share of saves, by iterating the chain to its stationary state."""
    with (SYSTEM / "load/mixes/authors/read_write.csv").open() as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    home = rows[0]["from"]
    share = {home: 1.0}
    mean: dict[str, float] = {}
    rounds = 4000
    for _ in range(rounds):
        after: dict[str, float] = {}
        for row in rows:
            to = home if row["to"] == "EndOfSession" else row["to"]
            after[to] = after.get(to, 0) + share.get(row["from"], 0) * float(row["probability"])
        share = after
        for state, value in share.items():
            mean[state] = mean.get(state, 0) + value / rounds
    editors = yaml.safe_load((SYSTEM / "load/mixes/read_write.yaml").read_text())["author_share"]
    assert editors * mean["Save"] == pytest.approx(0.076725, rel=0.02)  # UpdatePage of BenchBase's Wikipedia
