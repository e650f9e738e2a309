"""`ntier-analysis figure` on the measured sweep that comes with the package."""

from __future__ import annotations

import json

import pytest
from ntier_analysis.cli import app
from ntier_analysis.demo import SWEEP
from ntier_analysis.errors import DataError
from ntier_analysis.ondemand.command import KINDS, USES, Request, run, write
from ntier_analysis.report.data import read_sweep
from PIL import Image
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def store(demo):
    return demo


@pytest.fixture(scope="module")
def data(store):
    return read_sweep(store, SWEEP)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (Request("density-surface", ("web1",), "pool", "workers"), 'The pool "workers" of web1'),
        (Request("density-map", ("db1",), "network"), "The network eth0 of db1"),
        (Request("course", ("db1", "app1"), trial="u05000.r01", stretch=(5.0, 15.0)), "db1 from 5 s to 15 s"),
        (Request("timeline", trial="u05000.r01"), "5,000 users"),
        (Request("timeline", ("db1",)), "db1 from 0 s to 40 s"),
        (Request("load-throughput"), "Throughput of the whole system"),
        (Request("percentiles", trial="u13000.r01"), "The highest 95th percentile is that of"),
    ],
)
def test_each_kind_is_drawn_from_measured_data_with_its_provenance(data, tmp_path, request_, says):
    drawing = KINDS[request_.kind](data, request_)
    assert says in drawing.finding
    assert drawing.caption
    assert len(drawing.data)
    out = tmp_path / "figure.png"
    write(drawing, data.origin, out)
    text = Image.open(out).text
    assert text["Title"] == drawing.finding
    assert json.loads(text["Source"])["sweep"] == SWEEP


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request("density-map"), "a density shows one node"),
        (Request("density-map", ("db7",)), "--node db7: unknown; there are web1, app1, middleware1, db1"),
        (Request("density-map", ("db1",), "gpu"), "--resource of db1 gpu: unknown; there are cpu, network"),
        (Request("density-map", ("app1",), "pool"), "several items; choose one of threads, connections"),
        (Request("course", ("db1",), stretch=(30.0, 20.0)), "expected 0 <= from < to <= 40 s"),
        (Request("course", ("db1",), stretch=(0.0, 99.0)), "expected 0 <= from < to <= 40 s"),
        (Request("load-throughput", ("db1",)), "--node db1: its load was not measured; measured are whole system"),
        (Request("percentiles", trial="u00001.r01"), "--trial u00001.r01: unknown"),
        (Request("tiers"), "nothing to draw"),  # the thinned data hold no numbers of threads in use
    ],
)
def test_what_is_not_there_is_an_error_that_names_what_is(data, request_, problem):
    with pytest.raises(DataError, match=problem.replace("(", r"\(")):
        KINDS[request_.kind](data, request_)


def test_each_kind_says_which_options_it_uses():
    assert set(USES) == set(KINDS)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request("tiers", ("db1",)), "--node: a figure of kind tiers does not use it; it uses no option"),
        (Request("percentiles", resource="disk"), "--resource: a figure of kind percentiles does not use it"),
        (Request("density-map", ("db1",), trial="u05000.r01"), "--trial: .*; it uses --node, --resource, --item"),
        (Request("load-throughput", stretch=(1.0, 2.0)), "--from and --to: .* does not use it"),
    ],
)
def test_an_option_that_changes_nothing_is_an_error(tmp_path, request_, problem):
    with pytest.raises(DataError, match=problem):
        run(tmp_path / "nowhere", SWEEP, request_, tmp_path / "x.png")


def test_the_command_writes_the_file_and_prints_what_is_to_be_seen(store, tmp_path):
    out = tmp_path / "new" / "db1.pdf"
    words = ["figure", SWEEP, "--kind", "density-map", "--node", "db1", "--out", str(out), "--store", str(store)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert out.read_bytes().startswith(b"%PDF")
    assert b"/Type3" not in out.read_bytes(), "text stays text"
    assert "CPU of db1 was at or above 95 %" in result.output


@pytest.mark.parametrize(("kind", "name", "problem"), [("pie", "x.png", "--kind pie"), ("tiers", "x.gif", "format")])
def test_unknown_kinds_and_formats_are_refused_before_anything_is_read(tmp_path, kind, name, problem):
    words = ["figure", SWEEP, "--kind", kind, "--out", str(tmp_path / name), "--store", str(tmp_path / "nowhere")]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, DataError)
    assert problem in str(result.exception)
