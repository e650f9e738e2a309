"""`ntier-analysis slow`: requests are found where the logs leave no doubt, and nothing is said where they do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from ntier_analysis.cli import app
from ntier_analysis.contracts.files import lines
from ntier_analysis.errors import DataError
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.ondemand.slow import run
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
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("slow")
    truth = Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.01})
    write_sweep(made / "raw", truth, [1000], phases=(5.0, 10.0, 1.0))
    ingest_sweep(made / "raw" / SWEEP, made / "store")
    return made


def test_the_slowest_of_a_trial_are_found_told_and_drawn(folder):
    out = folder / "slow.png"
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
    text = CliRunner().invoke(app, ["slow", SWEEP, *options]).stdout
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


def test_a_client_that_logs_no_address_is_unknown_not_wrong(folder, tmp_path):
    shutil.copytree(folder / "raw", tmp_path / "raw")
    (file,) = (tmp_path / "raw").rglob("interactions.jtl.csv.zst")
    text = b"\n".join(lines(file)).replace(b",URL,", b",Link,", 1)
    file.unlink()
    file.with_suffix("").write_bytes(text + b"\n")
    told = json.loads(run(folder / "store", SWEEP, "", 3, tmp_path / "raw", None, json=True))
    assert [s["held"] for s in told["slowest"]] == ["unknown"] * 3
    assert all(s["within_ms"] is None for s in told["slowest"])
