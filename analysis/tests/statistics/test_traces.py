"""Parts of traced interactions: they add up, clocks that differ change no part behind the web server, and what is not
there stays unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from ntier_analysis.statistics.traces import (
    BEHIND_WEB,
    CONTRADICTION,
    NO_LINE,
    NO_SPAN,
    Traced,
    course,
    parted,
    union_s,
)
from ntier_analysis.statistics.waterfalls import segments

TRACE = "t"
SPANS = ["trace_id", "span_id", "parent_id", "kind", "name", "start_s", "end_s", "node"]


def followed(rng: np.random.Generator, clocks: dict[str, float]) -> tuple[Traced, dict[str, float], float, float]:
    """A made-up interaction as each node's clock saw it, its true parts (ms), its start and response time (s)."""
    d = dict.fromkeys(BEHIND_WEB, 0.0) | {"before": rng.exponential(0.01), "after": rng.exponential(0.01)}
    at = start = 1000.0
    at += d["before"]
    web_start = at
    at += (to_app := rng.exponential(0.005))
    app_start = at
    at += (wait := rng.exponential(0.02))
    spans = [(TRACE, "w", "a", "internal", "wait", app_start, at, "app1")]
    statements, app = [], 0.0
    for number in range(rng.integers(0, 6)):
        app += (own := rng.exponential(0.001))
        at += own
        way, inside, back = rng.exponential(0.002, 3)
        spans.append((TRACE, f"c{number}", "a", "client", "SELECT", at, at + way + inside + back, "app1"))
        if rng.random() < 0.7:
            node = f"db{rng.integers(1, 3)}"
            statements.append((TRACE, f"c{number}", at + way, at + way + inside, node))
            d["between"] += way + back
            d["database"] += inside
        else:
            d["behind"] += way + inside + back
        at += way + inside + back
    spans.append((TRACE, "a", "x", "server", "ViewStory", app_start, at, "app1"))
    at += (back := rng.exponential(0.002))
    d |= {"server": to_app + back, "wait": wait, "program": app}
    web = pd.DataFrame([(TRACE, web_start, at, "web1", "app1", False)],
                       columns=["trace_id", "start_s", "t_s", "node", "app_node", "image"])  # fmt: skip
    frames = [web, pd.DataFrame(spans, columns=SPANS),
              pd.DataFrame(statements, columns=["trace_id", "parent_id", "start_s", "end_s", "node"])]  # fmt: skip
    for frame in frames:
        for column in {"start_s", "end_s", "t_s"} & set(frame):
            frame[column] = frame[column].astype(float) + frame["node"].map(clocks).astype(float)
    return Traced(*frames), {name: 1000 * value for name, value in d.items()}, start, at + d["after"] - start


def row_of(traced: Traced, start_s: float, response_s: float) -> dict:
    row = parted(traced) | {"start_s": start_s, "response_time_ms": 1000 * response_s}
    return row | segments(pd.DataFrame([row])).iloc[0].to_dict()


@pytest.mark.parametrize("seed", range(40))
def test_parts_are_the_true_ones_and_add_up_within_the_clocks_error(seed):
    rng = np.random.default_rng(seed)
    clocks = {node: rng.uniform(-0.002, 0.002) for node in ("web1", "app1", "db1", "db2")}
    traced, truth, start_s, response_s = followed(rng, clocks)
    row = row_of(traced, start_s, response_s)
    assert row["missing"] == ""
    assert {name: row[name] for name in BEHIND_WEB} == pytest.approx({n: truth[n] for n in BEHIND_WEB}, abs=1e-3)
    assert sum(row[name] for name in BEHIND_WEB) == pytest.approx(row["within"], abs=1e-3)
    error_ms = 1000 * abs(clocks["web1"])
    assert row["before"] == pytest.approx(truth["before"], abs=error_ms + 1e-3)
    assert row["before"] + row["within"] + row["after"] == pytest.approx(1000 * response_s, abs=error_ms + 1e-3)


def exact():
    """One interaction with statements, all clocks alike."""
    rng = np.random.default_rng(3)
    while True:
        traced, truth, start_s, _ = followed(rng, dict.fromkeys(("web1", "app1", "db1", "db2"), 0.0))
        if truth["database"] > 0 and truth["behind"] > 0:
            return traced, truth, start_s


def test_without_the_applications_span_only_the_whole_behind_the_web_server_is_known():
    traced, _, _ = exact()
    row = parted(Traced(traced.web, traced.spans.iloc[:0], traced.statements))
    assert row["missing"] == NO_SPAN
    assert row["web_node"] == "web1"
    assert all(np.isnan(row[name]) for name in BEHIND_WEB)


def test_without_the_web_servers_line_nothing_is_known():
    traced, _, _ = exact()
    row = parted(Traced(traced.web.iloc[:0], traced.spans, traced.statements))
    assert row["missing"] == NO_LINE
    assert all(np.isnan(row[name]) for name in BEHIND_WEB)


def test_statements_that_no_database_logged_are_not_called_the_databases():
    traced, truth, _ = exact()
    row = parted(Traced(traced.web, traced.spans, traced.statements.iloc[:0]))
    assert row["database"] == row["between"] == 0
    assert row["behind"] == pytest.approx(truth["between"] + truth["database"] + truth["behind"], abs=1e-3)


def test_what_a_database_did_not_log_was_shorter_there_than_its_threshold():
    traced, truth, _ = exact()
    row = parted(Traced(traced.web, traced.spans, traced.statements, 0.5))
    calls = traced.spans[
        (traced.spans["kind"] == "client") & ~traced.spans["span_id"].isin(traced.statements["parent_id"])
    ]
    assert row["behind"] == pytest.approx(
        sum(min(0.5, 1000 * ms) for ms in calls["end_s"] - calls["start_s"]), abs=1e-3
    )
    assert row["between"] + row["behind"] == pytest.approx(truth["between"] + truth["behind"], abs=1e-3)
    assert row["database"] == pytest.approx(truth["database"], abs=1e-3)


def test_a_static_page_is_the_web_servers_own():
    traced, _, _ = exact()
    row = parted(Traced(traced.web.assign(app_node="-"), traced.spans.iloc[:0], traced.statements.iloc[:0]))
    assert row["missing"] == ""
    assert row["server"] == pytest.approx(1000 * (traced.web["t_s"] - traced.web["start_s"])[0])


def test_spans_that_cannot_be_of_one_request_say_so():
    traced, _, _ = exact()
    longer = traced.spans.assign(start_s=traced.spans["start_s"].where(traced.spans["kind"] != "server", 990.0))
    assert parted(Traced(traced.web, longer, traced.statements))["missing"] == CONTRADICTION


def test_of_several_tries_the_last_counts():
    traced, truth, _ = exact()
    earlier = traced.web.assign(start_s=traced.web["start_s"] - 2, t_s=traced.web["start_s"] - 1, app_node="app1")
    row = parted(Traced(pd.concat([traced.web, earlier]), traced.spans, traced.statements))
    assert row["web_start_s"] == traced.web.loc[0, "start_s"]
    assert row["program"] == pytest.approx(truth["program"], abs=1e-3)


def test_a_write_to_two_replicas_takes_as_long_as_either_works():
    spans = pd.DataFrame(
        [
            (TRACE, "c", "a", "client", "UPDATE", 10.0, 10.1, "app1"),
            (TRACE, "m", "c", "server", "UPDATE", 10.01, 10.09, "mid1"),  # a middleware that writes spans, too
            (TRACE, "a", "x", "server", "StoreComment", 9.9, 10.2, "app1"),
        ],
        columns=SPANS,
    )
    web = pd.DataFrame([(TRACE, 9.8, 10.25, "web1", "app1", False)],
                       columns=["trace_id", "start_s", "t_s", "node", "app_node", "image"])  # fmt: skip
    rows = [(TRACE, "m", 10.02, 10.05, "db1"), (TRACE, "c", 10.04, 10.08, "db2")]
    statements = pd.DataFrame(rows, columns=["trace_id", "parent_id", "start_s", "end_s", "node"])
    row = parted(Traced(web, spans, statements))
    assert (row["database"], row["between"], row["db_node"]) == (pytest.approx(60), pytest.approx(40), "db1+db2")


def test_the_course_is_in_the_order_of_time_since_the_click():
    traced, _, start_s = exact()
    steps = course(traced, start_s)
    assert steps[0]["what"] == "server"
    assert [s["at_ms"] for s in steps] == sorted(s["at_ms"] for s in steps)
    assert {"server", "program", "wait", "statement", "database"} == {s["what"] for s in steps}


def test_a_union_counts_what_overlaps_once():
    assert union_s(np.array([0.0, 2.0, 1.0]), np.array([1.5, 3.0, 1.2])) == pytest.approx(2.5)
    assert union_s(np.array([0.0]), np.array([9.0]), 1.0, 2.0) == pytest.approx(1.0)
    assert union_s(np.array([]), np.array([])) == 0
