"""What a report says, that it is self-contained, and that strange input cannot break it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import pandas as pd
import plotly.graph_objects
import plotly.offline
import pytest
from ntier_analysis.contracts import Manifest, State
from ntier_analysis.errors import DataError
from ntier_analysis.figures.drawing import placed
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.report import drawings, page, shell, summary, words, write_report
from ntier_analysis.report.data import read_sweep
from ntier_analysis.report.tables import sweep_check_rows, trial_rows
from ntier_analysis.store.schema import TABLES
from ntier_analysis.store.tables import read_table, write_table
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json
from synthetic import Spec, Truth, write_trial

pytestmark = pytest.mark.whole

MAX_BYTES = 3_000_000


class Elements(HTMLParser):
    """Start tags with their attributes, and the text of h1, title and scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._open = False
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, dict, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = True

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((*self.tags[-1], data))

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def of(self, tag: str) -> list[dict]:
        return [a for t, a in self.tags if t == tag]

    def text(self, tag: str) -> list[tuple[dict, str]]:
        return [(a, text) for t, a, text in self.texts if t == tag]


@pytest.fixture(scope="module")
def elements(report) -> Elements:
    return Elements(report.html)


def test_the_first_sentence_is_the_verdict(report, elements):
    sentence = elements.text("h1")[0][1]
    assert re.fullmatch(
        r"db CPU on db1 limits 1/1/1/1M at \d\d\.\d \[\d\d\.\d, \d\d\.\d\] interactions/s measured \(nominal \d{3} "
        r"\[\d{3}, \d{3}\] at scale 0\.1\) from [34],\d00 users; saturation (1\.00|0\.9\d) \[0\.\d\d, \d\.\d\d\]\.",
        sentence,
    )
    assert f"**{sentence}**" in (report.folder / "report.md").read_text()


def test_what_to_measure_next_stands_between_verdict_and_evidence(report):
    found = verdicts(report.store, [report.sweep])[0]
    assert found.next
    for verdict, text in (("<h1>", report.html), ("**", (report.folder / "report.md").read_text())):
        places = [text.index(t) for t in (verdict, *map(words.sentence, found.next))]
        evidence = text.index("trials beyond the knee agree")
        assert places == sorted(places)
        assert places[-1] < evidence


def test_checks_of_the_sweep_are_listed_failed_ones_first(report):
    table = read_table(report.store, "sweep_checks", report.sweep)
    rows = sweep_check_rows(table)
    assert {r["id"] for r in rows} == set(table["id"])
    ranks = [("fail", "undecidable", "pass").index(r["outcome"]) for r in rows]
    assert ranks == sorted(ranks)
    assert all(f"<td>{i}</td>" in report.html for i in table["id"])
    assert "checks of the whole sweep" in report.html


@pytest.mark.usefixtures("words_alone")
def test_a_store_without_checks_of_the_sweep_says_nothing_of_them(report, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(report.store, store)
    shutil.rmtree(store / "sweep_checks")
    assert "checks of the whole sweep" not in write_report(store, report.sweep, tmp_path / "out").read_text()


def test_what_was_not_validated_of_an_import_is_a_warning(report):
    data = read_sweep(report.store, report.sweep)
    told = words.warnings(data.trials.assign(not_validated="clocks; the mix"), data.checks, data.verdict)
    assert any("NOT VALIDATED" in t and "clocks; the mix" in t for t in told)
    measured = words.warnings(data.trials, data.checks, data.verdict)
    assert not any("NOT VALIDATED" in t for t in measured)
    # an option of `make` helps those only who measure by it
    assert any("For claims measure 180 s (PHASES=60/180/10), or give" in t for t in measured)
    assert any("For claims measure 180 s, or give" in t for t in told)
    uneven = pd.DataFrame({"id": "H6", "required": False, "outcome": ["fail"] * 3, "value": [31.0, 204.2, 9]})
    for trials, end in ((data.trials, " (REPS=3)."), (data.trials.assign(target="imported"), "compare.")):
        assert any(
            "repeat before you compare" in t and t.endswith(end) for t in words.warnings(trials, uneven, data.verdict)
        )


def test_the_explained_share_is_that_of_the_verdict(report):
    data = read_sweep(report.store, report.sweep)
    known = {t["trial"]: t["explained_share"] for t in data.verdict["trials"] if t["explained_share"] is not None}
    assert known
    shown = {r["trial"]: r["explained"] for r in trial_rows(data)}
    assert {t: shown[t] for t in known} == {t: f"{100 * v:.0f} %" for t, v in known.items()}


def test_numbers_of_the_sentence_are_those_of_the_verdict(report, elements):
    found = as_json(verdicts(report.store, [report.sweep])[0])
    value, (low, high) = found["max_throughput_per_s"], found["max_throughput_interval"]
    sentence = elements.text("h1")[0][1]
    assert f"{value:.1f} [{low:.1f}, {high:.1f}] interactions/s measured" in sentence
    assert f"(nominal {10 * value:.0f} [{10 * low:.0f}, {10 * high:.0f}] at scale 0.1)" in sentence


def test_the_page_is_one_small_file_that_asks_for_nothing(report, elements):
    assert report.page.stat().st_size <= MAX_BYTES
    for tag, attributes in elements.tags:
        for name in ("src", "href", "data", "action", "srcset", "poster"):
            value = attributes.get(name) or ""
            assert not re.match(r"(?:[a-z]+:)?//", value), f"<{tag} {name}={value[:60]}>"
    assert all(a["src"].startswith("data:image/svg+xml;base64,") for a in elements.of("img"))
    assert not elements.of("link")
    assert not any("src" in a for a in elements.of("script"))


def test_the_policy_allows_exactly_the_shipped_programs(elements):
    policy = next(a["content"] for a in elements.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; ")
    programs = [
        "".join(t for a, t in elements.text("script") if a == {} and marker in t)
        for marker in ("Plotly, Inc.", '"use strict";\n//')
    ]
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    assert allowed == [base64.b64encode(hashlib.sha256(p.encode()).digest()).decode() for p in programs]
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")


def test_every_figure_says_what_it_shows_and_how_it_was_made(report, elements):
    figures = elements.of("figure")
    images = elements.of("img")
    assert len(figures) == len(images) >= 9
    assert all(len(a["alt"]) > 30 and a["alt"].endswith(".") for a in images)
    for caption in re.findall(r"<figcaption>(.*?)</figcaption>", report.html, re.S):
        assert "scale 0.1" in caption
        assert re.search(r"n = \d", caption)
        assert "density" not in caption or "bandwidth 2 points" in caption
    names = {p.stem for p in (report.folder / "figures").glob("*.png")}
    assert {
        "throughput",
        "response-time",
        "utilization",
        "timeline",
        "pools",
        "density-map-db1-cpu",
        "density-surface-db1-cpu",
    } <= names
    for name in names:
        assert (report.folder / "figures" / f"{name}.pdf").stat().st_size > 1000
        assert len(pd.read_csv(report.folder / "figures" / f"{name}.csv", comment="#")) > 0


def test_every_trial_is_listed_and_the_invalid_one_says_why(report):
    rows = re.findall(r"<tr( class=\"bad\")?><td class=\"nowrap\">(u\d+\.r01)</td>(.*?)</tr>", report.html, re.S)
    trials = [r for r in rows if "interactions" not in r[2] and r[1]]
    listed = {name: (bad, text) for bad, name, text in trials[: len(report.loads)]}
    assert list(listed) == [f"u{u:05d}.r01" for u in report.loads]
    bad, text = listed[f"u{report.invalid:05d}.r01"]
    assert bad
    assert "INVALID" in text
    assert "host_saturated" in text
    assert sum(bool(bad) for bad, _ in listed.values()) == 1
    assert "1 of 7 trials is INVALID and not used in the verdict: u07000.r01 (host_saturated)" in report.html


def test_provenance_mix_demands_and_command(report):
    for text in (
        report.command,
        "0123abc",
        "9.7.0",
        "app.threads",
        "StoriesOfTheDay",
        "Exploratory: run phases of 40 s",
    ):
        assert text in report.html
    mix = pd.read_csv(report.folder / "tables" / "mix.csv", comment="#")
    assert mix["share_pct"].sum() == pytest.approx(100)
    assert mix["target_pct"].tolist() == [100.0]
    demands = pd.read_csv(report.folder / "tables" / "demands.csv", comment="#").set_index("node")
    assert demands["demand_ms"].idxmax() == "db1"
    assert demands["demand_ms"]["db1"] == pytest.approx(1.75, rel=0.1)
    assert demands["demand_ms"]["app1"] == pytest.approx(1.2, rel=0.15)
    assert (demands["low_ms"] < demands["demand_ms"]).all()
    assert (demands["demand_ms"] < demands["high_ms"]).all()


def test_the_model_is_drawn_beside_the_measurement_with_its_error(report, elements):
    found = re.search(
        r"closed model of these demands has its maximum at ([\d.]+) .* limited by the db tier", report.html
    )
    assert float(found[1]) == pytest.approx(0.1 / 0.00175, rel=0.1)
    assert re.search(r"misses the measured throughput by \d+\.\d % on average over 6 loads", report.html)
    plot = next(json.loads(t) for a, t in elements.text("script") if a.get("id") == "data-throughput")
    assert "closed model" in [trace["name"] for trace in plot["data"]]


@pytest.mark.usefixtures("page_undrawn")
def test_text_from_the_data_is_escaped(report, tmp_path):
    """The detail of the failed check holds markup; an interaction and a reason hold worse."""
    assert "the host was &lt;b&gt;97 % busy&lt;/b&gt;" in report.html
    evil = "</script><script>alert(1)</script>\"'"
    for name in TABLES:
        frame = read_table(report.store, name, report.sweep)
        if name == "interactions":
            frame["interaction"] = evil
        if name == "trials":
            frame["invalid_reasons"] = frame["invalid_reasons"].where(frame["valid"], evil)
        write_table(tmp_path / "store", name, report.sweep, frame)
    html = write_report(tmp_path / "store", report.sweep, tmp_path).read_text()
    assert "<script>alert" not in html
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in html
    plots = [text for attributes, text in Elements(html).text("script") if attributes.get("type") == "application/json"]
    assert any(evil in json.dumps(json.loads(p), ensure_ascii=False).replace('\\"', '"') for p in plots)


@pytest.mark.usefixtures("words_alone")
def test_names_with_a_bar_break_no_table_of_the_markdown(report, tmp_path):
    for name in [t for t in TABLES if t != "verdicts"]:  # made of the other tables: it is made again
        frame = read_table(report.store, name, report.sweep)
        for column, before in (("trial", "u"), ("node", "db")):
            if column in frame:
                frame[column] = frame[column].astype(str).str.replace(before, f"{before}|", regex=False)
        write_table(tmp_path / "store", name, report.sweep, frame)
    text = (write_report(tmp_path / "store", report.sweep, tmp_path).parent / "report.md").read_text()
    tables = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.M)]
    assert sum(r"u\|01000.r01" in row and r"db\|1 CPU" in row for table in tables for row in table) == 1
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) == 1, table[0]


def test_interactive_figures_are_valid_for_the_shipped_plotly(elements):
    specs = [json.loads(t) for a, t in elements.text("script") if a.get("type") == "application/json"]
    assert len(specs) >= 8
    for spec in specs:
        plotly.graph_objects.Figure(spec)  # rejects unknown attributes and values
        assert json.loads(spec["layout"]["meta"])["sweep"]
    assert plotly.offline.get_plotlyjs_version() == shell.PLOTLY_JS


@pytest.mark.usefixtures("page_alone")
def test_a_store_without_raw_files_and_optional_columns_gives_a_report(report, tmp_path):
    """As imported data: the columns that the contract requires, nothing else."""
    kept = {
        "trials": "sweep trial topology users throughput_per_s response_time_mean_ms run_start_s run_end_s valid "
        "think_time_s",
        "samples": "sweep trial t_s phase node tier resource metric value source item",
    }
    for name in TABLES:
        frame = read_table(report.store, name, report.sweep)
        if name in ("interactions", "checks", "nodes", "thinks"):
            frame = frame.iloc[:0]
        frame = frame[kept[name].split()] if name in kept else frame
        if name == "trials":
            frame = frame.assign(scale=1.0, users_real=frame["users"])
        write_table(tmp_path / "store", name, report.sweep, frame)
    html = write_report(tmp_path / "store", report.sweep, tmp_path / "out").read_text()
    assert "The command is not recorded (imported data)." in html
    assert "No checks are stored for this sweep" in html
    assert "at scale" not in Elements(html).text("h1")[0][1]


@pytest.mark.usefixtures("page_alone")
def test_a_single_trial_gives_a_report(report, tmp_path):
    for name in [t for t in TABLES if t != "verdicts"]:  # made of all trials: it is made again
        frame = read_table(report.store, name, report.sweep)
        own = frame["trial"].isin(["u01000.r01", ""]) if "trial" in frame else slice(None)
        write_table(tmp_path / "store", name, report.sweep, frame[own])
    html = write_report(tmp_path / "store", report.sweep, tmp_path / "out").read_text()
    assert "Nothing limits 1/1/1/1M up to 1,000 users" in html


def test_targets_of_a_mix_with_authors_though_the_first_trial_failed(tmp_path):
    for users in (600, 900):
        spec = Spec(users, Truth({"db": 0.001}), phases=(20.0, 40.0, 5.0), mix="read_write", seal=False)
        folder = write_trial(tmp_path / "raw", spec)
        (folder / "config" / "read_write.authors.csv").write_text(
            "from,to,probability\nStoriesOfTheDay,AuthorLogin,1\nAuthorLogin,StoriesOfTheDay,1\n"
        )
        if users == 600:
            shutil.rmtree(folder / "clients")
            Manifest.read(folder).model_copy(update={"state": State.FAILED}).write(folder)
    sweep = ingest_sweep(folder.parent, tmp_path / "store").sweep
    targets = read_sweep(tmp_path / "store", sweep).mix_targets
    # a tenth of the users are authors, who log in every other time
    assert targets == pytest.approx({"StoriesOfTheDay": 0.95, "AuthorLogin": 0.05}, abs=0.02)


@pytest.mark.usefixtures("page_alone")
def test_no_valid_trial_gives_a_report_that_says_so(report, tmp_path):
    for name in [t for t in TABLES if t != "verdicts"]:  # made of valid trials: it is made again
        frame = read_table(report.store, name, report.sweep)
        if name == "trials":
            frame = frame.assign(valid=False, invalid_reasons="clock")
        write_table(tmp_path / "store", name, report.sweep, frame)
    html = write_report(tmp_path / "store", report.sweep, tmp_path / "out").read_text()
    assert "The bottleneck of 1/1/1/1M is unknown" in html
    assert "7 of 7 trials are INVALID" in html


def test_unknown_sweep_names_the_known_ones(report, tmp_path):
    with pytest.raises(DataError, match=f"'nosuch' .* there are: {report.sweep}"):
        write_report(report.store, "nosuch", tmp_path)
    with pytest.raises(DataError, match="not a store"):
        write_report(tmp_path / "nothing", "x", tmp_path)


def test_equal_data_give_equal_files(report, tmp_path, monkeypatch):
    """All figures, drawn again, and laid out once before: a layout that began from an earlier one gave other bytes."""

    @contextlib.contextmanager
    def placed_again(figure):
        with placed(figure):
            pass
        with placed(figure):
            yield

    monkeypatch.setattr(page, "placed", placed_again)
    again = write_report(report.store, report.sweep, tmp_path).parent
    assert len(list(again.glob("figures/*.pdf"))) > 8
    written = [path.relative_to(again) for path in sorted(again.rglob("*")) if path.is_file()]
    assert written == [path.relative_to(report.folder) for path in sorted(report.folder.rglob("*")) if path.is_file()]
    for name in written:
        assert (again / name).read_bytes() == (report.folder / name).read_bytes(), name


VERDICT = {
    "topology": "1/2/1/2M", "max_throughput_per_s": 80.04, "max_throughput_interval": [79.0, 81.0],
    "max_throughput_at_least": False, "knee_users": 5630, "knee_bracketed": True, "kind": "stable",
    "bottlenecks": [
        {"tier": "db", "resource": "cpu", "nodes": ["db1", "db2"], "saturation": 0.97, "interval": [0.95, 0.98]},
        {"tier": "app", "resource": "cpu", "nodes": ["app1"], "saturation": 0.81, "interval": [0.7, 0.9]},
    ],
    "trials": [{"users": 9000, "valid": True}, {"users": 13000, "valid": False}],
}  # fmt: skip


RATE = "80.0 [79.0, 81.0] interactions/s from 5,600 users"
SENTENCES = [
    (
        {"verdict": "single", "bottlenecks": VERDICT["bottlenecks"][:1]},
        f"db CPU on db1 and db2 limits 1/2/1/2M at {RATE}; saturation 0.97 [0.95, 0.98].",
    ),
    (
        {"verdict": "multi", "kind": "simultaneous"},
        f"db CPU on db1 and db2 and app CPU on app1 limit 1/2/1/2M (simultaneous) at {RATE}; saturation 0.97 "
        "[0.95, 0.98] and 0.81 [0.70, 0.90].",
    ),
    (
        {"verdict": "none", "knee_users": None},
        "Nothing limits 1/2/1/2M up to 9,000 users: throughput follows N/(Z+R), the users divided by think and "
        "response time.",
    ),
    (
        {"verdict": "hidden", "bottlenecks": [], "max_throughput_at_least": True},
        f"Throughput of 1/2/1/2M levels off at no less than {RATE}, although no measured resource saturates: the "
        "bottleneck is hidden.",
    ),
    (
        {
            "verdict": "single",
            "bottlenecks": VERDICT["bottlenecks"][:1],
            "max_throughput_per_s": None,
            "knee_users": None,
        },
        "db CPU on db1 and db2 limits 1/2/1/2M; saturation 0.97 [0.95, 0.98].",
    ),
    (
        {"verdict": "single", "bottlenecks": VERDICT["bottlenecks"][:1], "load_model": "work"},
        f"db CPU on db1 and db2 limits 1/2/1/2M at {RATE.replace('users', 'workers')}; saturation 0.97 [0.95, 0.98].",
    ),
    ({"verdict": "unknown", "bottlenecks": []}, "The bottleneck of 1/2/1/2M is unknown: the data do not suffice."),
    ({"verdict": "unknown", "topology": "4"}, "The bottleneck of topology 4 is unknown: the data do not suffice."),
]


@pytest.mark.parametrize(("change", "sentence"), SENTENCES)
def test_sentence_of_each_verdict(change, sentence):
    assert words.verdict_sentence(VERDICT | change, 1.0) == sentence


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["db1"], "db1"),
        (["db1", "db2"], "db1 and db2"),
        ([f"db{i}" for i in range(1, 10)], "db1 to db9"),
        (["db1", "db2", "db3", "db7", "app1"], "db1 to db3, db7 and app1"),
        (["host", "db9", "db10", "db11"], "host and db9 to db11"),
        (["db01"], "db01"),
        (["web-01", "web-02", "web-03"], "web-01 to web-03"),
        (["db09", "db10", "db11"], "db09 to db11"),
        (["db1", "db02", "db03"], "db1, db02 and db03"),
    ],
)
def test_many_nodes_are_named_briefly(names, text):
    assert words.nodes(names) == text


def test_migration_is_told():
    change = {"from_users": 3000, "to_users": 5000, "from": {"tier": "app", "resource": "cpu"}}
    change["to"] = {"tier": "db", "resource": "disk"}
    told = "the bottleneck migrates from app CPU at 3,000 users to db disk at 5,000 users"
    assert words.migrations({"migration": [change]}) == [told]
    assert words.migrations({"migration": [change], "load_model": "work"}) == [told.replace("users", "workers")]


def test_only_valid_trials_are_called_valid_after_a_retry(report):
    trials = read_table(report.store, "trials", report.sweep).assign(attempts=2, attempt=2)
    told = words.warnings(trials, read_table(report.store, "checks", report.sweep), {"verdict": "none"})
    retried = next(w for w in told if w.startswith("Valid only after a retry"))
    assert "u01000.r01 (attempt 2)" in retried
    assert f"u{report.invalid:05d}" not in retried


def test_a_machine_whose_speed_varied_is_warned_of(report):
    trials = read_table(report.store, "trials", report.sweep)
    speed = pd.DataFrame(
        {"id": "H6", "required": False, "outcome": ["fail", "fail", "pass"], "value": [31.0, 204.2, 9]}
    )

    def told(checks: pd.DataFrame) -> list[str]:
        return [w for w in words.warnings(trials, checks, {"verdict": "none"}) if "speed" in w]

    (warning,) = told(speed)
    assert "varied in 2 of 3 trials" in warning
    assert "204 %" in warning
    assert told(speed.iloc[1:]) == []


@pytest.mark.usefixtures("page_alone")
def test_a_sweep_that_has_measured_nothing_gives_a_report(report, tmp_path):
    """Its only trial failed or still runs: there are no rows but its own."""
    for name in [t for t in TABLES if t != "verdicts"]:  # made of valid trials: it is made again
        frame = read_table(report.store, name, report.sweep)
        if name == "trials":
            measured = [c for c in frame if c.endswith(("_per_s", "_ms")) or c in ("interactions", "pending", "errors")]
            frame = frame[frame["trial"] == "u01000.r01"].drop(columns=measured)
            frame = frame.assign(
                valid=False, state="failed", invalid_reasons="failed", failure="client_exit 137 | \n killed"
            )
            frame = frame.drop(columns=["run_start_s", "run_end_s", "ramp_up_start_s", "ramp_down_end_s"])
        else:
            frame = frame.iloc[:0]
        write_table(tmp_path / "store", name, report.sweep, frame)
    written = write_report(tmp_path / "store", report.sweep, tmp_path / "out")
    html = written.read_text()
    assert "The bottleneck of 1/1/1/1M is unknown" in html
    assert "Nothing has been measured yet." in html
    assert "u01000.r01 (failed: client_exit 137 | killed)" in html
    assert "INVALID</span> failed: client_exit 137 | killed</td>" in html
    assert r"**INVALID** failed: client_exit 137 \| killed |" in (written.parent / "report.md").read_text()
    assert summary.read(written)["trials"][0]["reasons"] == "failed: client_exit 137 | killed"
    assert not re.search(r"\bnan\b", re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.S))


def test_trials_are_looked_up_among_their_names_and_not_among_those_of_all_interactions(report, monkeypatch):
    """A tenth of the time of a report, since pandas makes a Python object of each name that it looks among."""
    data, looked, isin = read_sweep(report.store, report.sweep), [], pd.Series.isin
    monkeypatch.setattr(pd.Series, "isin", lambda names, among: looked.append(len(among)) or isin(names, among))
    assert drawings.knee_trial(data, data.interactions["trial"]).trial in set(data.trials["trial"])
    assert drawings.load_figures(data)
    assert len(data.interactions) > 1000 > len(report.loads) >= max(looked)
