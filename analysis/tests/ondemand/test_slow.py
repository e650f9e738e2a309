"""`ntier-analysis slow`: requests are found where the logs leave no doubt, and nothing is said where they do."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import good_import
import pandas as pd
import pytest
from ntier_analysis.cli import app
from ntier_analysis.contracts.files import lines
from ntier_analysis.errors import DataError
from ntier_analysis.figures.waterfall import PARTS, waterfall
from ntier_analysis.importing import import_folder
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.ondemand.slow import run
from ntier_analysis.statistics.traces import BEHIND_WEB
from ntier_analysis.statistics.waterfalls import segments, with_requests
from PIL import Image
from synthetic import Truth, write_sweep
from typer.testing import CliRunner

SWEEP = "1-1-1-1M.browse_only.shardingsphere"
PAGE = {"start_s": 10.0, "page_s": 12.0, "t_s": 12.5, "url": "/a", "response_time_ms": 2500.0}
REQUEST = {"start_s": 10.4, "t_s": 11.99, "url": "/a", "node": "web1", "app_node": "app2"}


def found(pages, requests):
    pages = pd.DataFrame(pages)
    return with_requests(pages.iloc[[0]], pages, pd.DataFrame(requests))


def test_the_parts_of_an_interaction_add_up():
    rows = found([PAGE], [REQUEST, REQUEST | {"url": "/b"}, REQUEST | {"t_s": 11.5}, REQUEST | {"start_s": 9.9}])
    assert rows[["candidates", "web_node", "app_node"]].iloc[0].to_list() == [1, "web1", "app2"]
    assert segments(rows).iloc[0].to_dict() == pytest.approx({"before": 400, "within": 1590, "after": 510})


@pytest.mark.parametrize(
    ("pages", "requests", "candidates"),
    [
        ([PAGE], [REQUEST, REQUEST | {"start_s": 11.0}], 2),
        ([PAGE], [REQUEST | {"t_s": 12.03}], 0),
        ([PAGE], [REQUEST | {"start_s": 9.99}], 0),
        ([PAGE, PAGE | {"start_s": 9.0, "t_s": 12.7}], [REQUEST], 2),
    ],
    ids=["two requests", "ended after the first byte", "began before the user", "another user may have made it"],
)
def test_a_request_in_doubt_is_unknown(pages, requests, candidates):
    rows = found(pages, requests)
    assert rows[["candidates", "web_node"]].iloc[0].to_list() == [candidates, ""]
    assert segments(rows).isna().all(axis=None)


@pytest.fixture(scope="module")
def folder(made_once):
    def make(made):
        truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
        write_sweep(made / "raw", truth, [1000], phases=(5.0, 10.0, 1.0))
        ingest_sweep(made / "raw" / SWEEP, made / "store")

    return made_once("slow", make)


def test_the_slowest_of_a_trial_are_found_told_and_drawn(folder, tmp_path):
    out = tmp_path / "slow.png"
    options = ["--store", str(folder / "store"), "--top", "5", "--out", str(out)]
    done = CliRunner().invoke(app, ["slow", SWEEP, *options, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    slowest = told["slowest"]
    times = [s["response_time_ms"] for s in slowest]
    assert len(times) == 5
    assert times == sorted(times, reverse=True)
    known = [s for s in slowest if s["candidates"] == 1]
    assert known, "its addresses repeat, but seldom at once"
    for s in known:
        assert s["before_ms"] + s["within_ms"] + s["after_ms"] == pytest.approx(s["response_time_ms"], abs=2)
        assert s["within_ms"] > 0.95 * s["response_time_ms"]
        assert (s["app_node"], s["held"]) == ("app1", "web1, app1 and behind")
        assert s["url"].startswith("/rubbos/servlet/x?a=")
    assert "db1 CPU full" in known[0]["meanwhile"]
    assert Image.open(out).text["Title"] == told["finding"]
    text = CliRunner().invoke(app, ["slow", SWEEP, *options[:-2]]).stdout
    assert "web1, app1 and behind" in text
    assert "No log says" in text


def test_what_cannot_be_told_is_an_error(folder, tmp_path):
    store = folder / "store"
    with pytest.raises(DataError, match=r"--trial u9: unknown; there are u01000\.r01"):
        run(store, SWEEP, "u9", 5, None, None, json=False)
    with pytest.raises(DataError, match=r"no raw files of u01000\.r01; only they show single requests \(--raw"):
        run(store, SWEEP, "", 5, tmp_path, None, json=False)
    with pytest.raises(DataError, match=r"--out x\.gif: unknown format"):
        run(store, SWEEP, "", 5, None, Path("x.gif"), json=False)


def test_an_import_is_not_asked_for_raw_files_that_it_cannot_have(tmp_path):
    import_folder(good_import.write(tmp_path / "in", good_import.files()), tmp_path / "store")
    with pytest.raises(DataError, match="s: imported; slow needs the logs of raw trials"):
        run(tmp_path / "store", "s", "", 5, None, None, json=False)


def test_a_client_that_logs_no_address_is_unknown_not_wrong(folder, tmp_path):
    shutil.copytree(folder / "raw", tmp_path / "raw")
    (file,) = (tmp_path / "raw").rglob("interactions.jtl.csv.zst")
    text = b"\n".join(lines(file)).replace(b",URL,", b",Link,", 1)
    file.unlink()
    file.with_suffix("").write_bytes(text + b"\n")
    told = json.loads(run(folder / "store", SWEEP, "", 3, tmp_path / "raw", None, json=True))
    assert [s["held"] for s in told["slowest"]] == ["unknown"] * 3
    assert all(s["within_ms"] is None for s in told["slowest"])


# ---- traced interactions ----

EVERY = 5
SHARES = {"server": 0.1, "wait": 0.2, "program": 0.1, "between": 0.15, "database": 0.45}
"""Of the time in the web server, in this order: half of the web server's and the application's own comes at the end."""


def trace_id(number):
    return f"{number + 1:032x}"


def span_id(number, which):
    return f"{8 * number + which + 1:016x}"


@pytest.fixture(scope="module")
def followed(folder, tmp_path_factory):
    """The same trial as if one of five interactions had carried a trace context, with clocks that differ."""
    made = tmp_path_factory.mktemp("traced")
    shutil.copytree(folder / "raw", made / "raw")
    (trial,) = (made / "raw" / SWEEP).iterdir()
    ahead = {"client1": 0.0, "web1": 0.4, "app1": -0.3, "db1": 1.2, "middleware1": 0.0}
    manifest = json.loads((trial / "manifest.json").read_text())
    for node, clock in manifest["clock_offsets_s"].items():
        clock.update(offset_before=ahead[node], offset_after=ahead[node])
    (trial / "manifest.json").write_text(json.dumps(manifest))
    web = trial / "nodes/web1/logs/access.log.zst"
    log = [line.decode() for line in lines(web)]
    records = [line.split(b",") for line in lines(trial / "clients/client1/interactions.jtl.csv.zst")][1:]
    traces, spans, statements, out = ["t_start_ms,user,trace_id,span_id"], [HEADER], [], []
    for number, line in enumerate(log):
        began, took, rest = line.split(" ", 2)
        began, took = float(began), float(took)
        out.append(f"{began + ahead['web1']:.3f} {took:.0f} {rest}")
        if number >= len(records) or number % EVERY:
            continue
        out[-1] += f' "00-{trace_id(number)}-{span_id(number, 0)}-01"'
        record = records[number]
        user = int(record[5].rpartition(b"-")[2]) - 1
        traces.append(f"{record[0].decode()},{user},{trace_id(number)},{span_id(number, 0)}")
        at = 1e6 * (began + ahead["app1"]) + SHARES["server"] / 2 * took
        served, call = (1 - SHARES["server"]) * took, (SHARES["between"] + SHARES["database"]) * took
        wait, own = SHARES["wait"] * took, SHARES["program"] / 2 * took
        rows = [("internal", "wait", at, wait, 2, 1), ("client", '"SELECT a, b"', at + wait + own, call, 3, 1),
                ("server", "ViewStory", at, served, 1, 0)]  # fmt: skip
        for kind, name, t, d, own_id, parent in rows:
            ids = f"{trace_id(number)},{span_id(number, own_id)},{span_id(number, parent)}"
            spans.append(f"{ids},{kind},{name},{t:.0f},{d:.0f}")
        if number % (2 * EVERY) == 0:  # others were too short for the database's log
            end = (at + wait + own + call) / 1e6 - ahead["app1"] + ahead["db1"] - SHARES["between"] / 2 * took / 1e6
            moment = datetime.fromtimestamp(end, UTC)
            statements.append(
                f"# Time: {moment:%Y-%m-%dT%H:%M:%S.%f}Z\n# User@Host: u[u] @ [::1]\n"
                f"# Query_time: {SHARES['database'] * took / 1e6:.6f}  Lock_time: 0.0\nSET timestamp=1;\n"
                f"SELECT a, b /*traceparent='00-{trace_id(number)}-{span_id(number, 3)}-01'*/;\n"
            )
    web.unlink()
    web.with_suffix("").write_text("\n".join(out) + "\n")
    (trial / "clients/client1/traces.csv").write_text("\n".join(traces) + "\n")
    for node, name, text in (
        ("app1", "spans.csv", "\n".join(spans) + "\n"),
        ("db1", "statements.log", "".join(statements)),
    ):
        (trial / f"nodes/{node}/logs").mkdir(exist_ok=True)
        (trial / f"nodes/{node}/logs" / name).write_text(text)
    return made / "raw"


HEADER = "trace_id,span_id,parent_id,kind,name,start_us,duration_us"


def test_traced_interactions_are_parted_by_tier(folder, followed, tmp_path):
    out = tmp_path / "slow.png"
    told = json.loads(run(folder / "store", SWEEP, "", 20, followed, out, json=True, traced=True))
    assert len(told["slowest"]) == 20
    seen = 0
    for s in told["slowest"]:
        assert s["candidates"] == 1
        parts = {name: s[f"{name}_ms"] for name in (*SHARES, "behind")}
        assert sum(parts.values()) == pytest.approx(s["within_ms"], abs=0.01)
        assert s["before_ms"] + s["within_ms"] + s["after_ms"] == pytest.approx(s["response_time_ms"], abs=2)
        assert s["within_ms"] == pytest.approx(s["response_time_ms"], abs=2), "clocks are corrected"
        logged = parts["database"] > 0
        seen += logged
        shares = {
            "server": 0.1,
            "wait": 0.2,
            "program": 0.1,
            **({"between": 0.15, "database": 0.45} if logged else {"behind": 0.6}),
        }
        assert {n: parts[n] for n in shares} == pytest.approx(
            {n: v * s["within_ms"] for n, v in shares.items()}, abs=0.1
        )
        assert s["held"] == ("db1" if logged else "middleware or db")
        assert [step["what"] for step in s["course"]] == ["server", "program", "wait", "statement", "database"][
            : 4 + logged
        ]
        assert all(-2 <= step["at_ms"] <= s["response_time_ms"] + 2 for step in s["course"])
    assert 0 < seen < 20
    assert Image.open(out).text["Title"] == told["finding"]
    assert "middleware or db" in told["finding"]


def test_of_all_interactions_those_without_an_id_are_told_as_before(folder, followed):
    text = run(folder / "store", SWEEP, "", 20, followed, None, json=False)
    for word in ("--traced chooses among them", "No log says", "Traced interactions carry an id", "db1 db", "behind"):
        assert word in text
    told = json.loads(run(folder / "store", SWEEP, "", 200, followed, None, json=True))
    without = [s for s in told["slowest"] if not s["trace_id"] and s["candidates"] == 1]
    assert without
    assert all(s["program_ms"] is None and s["held"] == "web1, app1 and behind" for s in without)


def test_an_application_that_wrote_nothing_is_said_not_guessed(folder, followed, tmp_path):
    shutil.copytree(followed, tmp_path / "raw")
    next((tmp_path / "raw").rglob("spans.csv")).unlink()
    told = json.loads(run(folder / "store", SWEEP, "", 5, tmp_path / "raw", None, json=True, traced=True))
    assert {s["missing"] for s in told["slowest"]} == {"no span of the application"}
    assert all(s["program_ms"] is None and s["within_ms"] > 0 for s in told["slowest"])
    assert "None of them could be followed behind web." in told["finding"]


def test_tiers_have_the_names_that_their_system_gives_them(folder, followed, tmp_path):
    """Once with a tier between the program and the database, once with neither that tier nor one before the program."""
    for tiers in (["edge", "service", "router", "store"], ["service", "store"]):
        raw = tmp_path / tiers[0]
        shutil.copytree(followed, raw)
        (manifest,) = raw.rglob("manifest.json")
        document = json.loads(manifest.read_text())
        document["system"] = {"name": "toy", "title": "Toy", "tiers": [{"name": t, "title": t} for t in tiers]}
        document["system"] |= {"load_model": "closed", "factor": {"name": "users", "title": "users", "value": 1000}}
        names = dict(
            zip(
                ("web", "app", "middleware", "db"),
                tiers if len(tiers) == 4 else (tiers[0], *3 * tiers[1:]),
                strict=True,
            )
        )
        for node in document["nodes"]:
            node["tier"] = names.get(node["tier"], node["tier"])
        manifest.write_text(json.dumps(document))
        for traced in (True, False):
            out = raw / f"slow{traced}.png"
            text = run(folder / "store", SWEEP, "", 8, raw, out, json=False, traced=traced)
            picture = Image.open(out).text
            said = f"{picture['Title']} {picture['Description']} {' '.join(label for label, *_ in PARTS.values())}"
            assert f"passed before {tiers[0]} began with it" in said
            assert re.findall(r"web server|application|middleware\b|database\b(?!\})|before web|web and", said) == []
            assert f" {tiers[0]} and behind " in text


def test_the_figure_says_in_words_what_each_part_was():
    row = {"interaction": "Buy", "user": "client1/3", "response_time_ms": 60.0, "meanwhile": ""}
    parts = dict.fromkeys(("before", *BEHIND_WEB, "after"), 8.0) | {"within": 40.0}
    names = {
        "server": "edge",
        "program": "service",
        "between": "router",
        "database": "store",
        "behind": "router or store",
    }
    (legend,) = waterfall(pd.DataFrame([row | parts]), "", "", names).figure.legends
    assert [text.get_text() for text in legend.texts] == [
        "until edge begins with the request",
        "in edge, and waiting for a thread of service",
        "waiting for a connection",
        "in service",
        "statements: router",
        "statements: store",
        "statements: router or store",
        "after the page: what it embeds, and the way back",
    ]


def test_a_trial_without_traces_says_how_to_get_them(folder):
    with pytest.raises(DataError, match=r"no interaction was traced; a sweep with TRACE=100"):
        run(folder / "store", SWEEP, "", 5, None, None, json=False, traced=True)


def test_a_store_without_the_raw_files_says_what_is_needed(demo):
    """It said that no client had written anything."""
    with pytest.raises(DataError, match=r"clients: missing; this needs the raw files of the trial$"):
        run(demo, SWEEP, "", 5, None, None, json=False)
