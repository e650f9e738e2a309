"""Where interactions spent their time that carried a trace context through all tiers.

Parts are differences of durations, each of one clock, and so add up to the whole; offsets between clocks matter only
for when the web server began. What a tier did not write is not guessed: then the parts that it would tell apart stay
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

BEHIND_WEB = ("server", "wait", "program", "between", "database", "behind")
"""Parts of the time in the web server and all behind it, ms:
web: the web server, the way to the application, and the wait for one of its threads
wait: the application's wait for a connection
app: the application itself
between: the middleware and the ways
db: the databases, of the statements that they logged
behind: of statements that no database logged, what may have been the database's: no more than its threshold"""
SLACK_MS = 1.0
"""A part that is below zero by more shows that the spans are not of one request."""
NO_LINE, NO_SPAN, CONTRADICTION = "no line of its request", "no span of the application", "spans contradict each other"


@dataclass(frozen=True)
class Traced:
    """All that was written of traced interactions, on one clock (s).

    web: `trace_id, start_s, t_s, node, app_node, image`; spans: `trace_id, span_id, parent_id, kind, name, start_s,
    end_s, node`, of the application and, if they write some, of tiers behind it; statements: `trace_id, parent_id,
    start_s, end_s, node`, as the databases logged them."""

    web: pd.DataFrame
    spans: pd.DataFrame
    statements: pd.DataFrame
    unlogged_ms: float = np.inf
    """How long a statement can have been in a database that did not log it; inf if that is not known."""

    def of(self, trace_id: str) -> Traced:
        frames = (f[f["trace_id"] == trace_id] for f in (self.web, self.spans, self.statements))
        return Traced(*frames, self.unlogged_ms)


def union_s(starts: np.ndarray, ends: np.ndarray, low: float = -np.inf, high: float = np.inf) -> float:
    """Length of the union of intervals, each cut to [low, high]."""
    covered, last = 0.0, low
    for start, end in sorted(zip(np.clip(starts, low, high), np.clip(ends, low, high), strict=True)):
        covered += max(0.0, end - max(start, last))
        last = max(last, end)
    return covered


def page_of(traced: Traced) -> pd.Series | None:
    """The web server's line of the page, of the last try if there were several; None if there is none."""
    pages = traced.web[~traced.web["image"].astype(bool)].sort_values("start_s", kind="stable")
    return None if pages.empty else pages.iloc[-1]


def request_of(traced: Traced, page: pd.Series) -> pd.Series | None:
    """The application's span of that page: the last one that began the trace in it."""
    servers = traced.spans[(traced.spans["kind"] == "server") & (traced.spans["node"] == page["app_node"])]
    servers = servers.sort_values("start_s", kind="stable")
    return None if servers.empty else servers.iloc[-1]


def statements_of(traced: Traced, request: pd.Series) -> pd.DataFrame:
    """The calls of a request: `name, start_s, end_s, call_ms, db_ms` (NaN: no database logged it), `db_node`.

    A statement that the middleware sent to several replicas takes the union of their times. Times of replicas are of
    other clocks: only lengths are compared with the call's, and where they overlap."""
    calls = traced.spans[(traced.spans["kind"] == "client") & (traced.spans["parent_id"] == request["span_id"])]
    parents: Mapping[str, str] = dict(zip(traced.spans["span_id"], traced.spans["parent_id"], strict=True))
    known, owner = set(calls["span_id"]), []
    for parent in traced.statements["parent_id"]:
        for _ in range(len(parents)):  # by way of spans that the middleware may have written
            if parent in known or parent not in parents:
                break
            parent = parents[parent]
        owner.append(parent)
    logged = traced.statements.assign(owner=owner)
    rows = []
    for call in calls.sort_values("start_s", kind="stable").itertuples():
        mine, call_ms = logged[logged["owner"] == call.span_id], 1000 * (call.end_s - call.start_s)
        logged_ms = 1000 * union_s(mine["start_s"].to_numpy(), mine["end_s"].to_numpy())
        db_ms = min(call_ms, logged_ms) if len(mine) else np.nan
        nodes = "+".join(sorted(set(mine["node"])))
        rows.append((call.name, call.start_s, call.end_s, call_ms, db_ms, nodes))
    return pd.DataFrame(rows, columns=["name", "start_s", "end_s", "call_ms", "db_ms", "db_node"])


def parted(traced: Traced) -> dict:
    """Of one trace: `web_start_s, web_end_s, web_node, app_node`, the parts `BEHIND_WEB` (ms, NaN where they cannot be
    told apart), `db_node` and `missing` (empty, or what is not there)."""
    nothing = dict.fromkeys(("web_start_s", "web_end_s", *BEHIND_WEB), np.nan)
    none = nothing | {"web_node": "", "app_node": "", "db_node": "", "missing": NO_LINE}
    page = page_of(traced)
    if page is None:
        return none
    found = none | {"web_start_s": page["start_s"], "web_end_s": page["t_s"], "web_node": page["node"],
                    "app_node": page["app_node"], "missing": ""}  # fmt: skip
    within = 1000 * (page["t_s"] - page["start_s"])
    if page["app_node"] == "-":  # a file of the web server's own
        return found | dict.fromkeys(BEHIND_WEB, 0.0) | {"server": within}
    request = request_of(traced, page)
    if request is None:
        return found | {"missing": NO_SPAN}
    calls = statements_of(traced, request)
    waits = traced.spans[(traced.spans["kind"] == "internal") & (traced.spans["parent_id"] == request["span_id"])]
    may_be_db = calls["call_ms"].clip(upper=traced.unlogged_ms).where(calls["db_ms"].isna(), 0.0)
    served = 1000 * (request["end_s"] - request["start_s"])
    wait = 1000 * float((waits["end_s"] - waits["start_s"]).sum())
    parts = {
        "server": within - served,
        "wait": wait,
        "program": served - wait - calls["call_ms"].sum(),
        "between": float((calls["call_ms"] - calls["db_ms"].fillna(0.0) - may_be_db).sum()),
        "database": float(calls["db_ms"].sum()),
        "behind": float(may_be_db.sum()),
    }
    if min(parts.values()) < -SLACK_MS:
        return found | {"missing": CONTRADICTION}
    nodes = sorted({node for names in calls["db_node"] for node in names.split("+") if node})
    return found | {name: max(0.0, ms) for name, ms in parts.items()} | {"db_node": "+".join(nodes)}


def course(traced: Traced, start_s: float) -> list[dict]:
    """One interaction in the order of time: `what, node, at_ms` (since the client began, on one clock), `ms`."""
    page = page_of(traced)
    if page is None:
        return []
    rows = [("server", "request", page["node"], page["start_s"], page["t_s"])]
    request = request_of(traced, page)
    if request is not None:
        rows.append(("program", request["name"], request["node"], request["start_s"], request["end_s"]))
        inner = traced.spans[traced.spans["parent_id"] == request["span_id"]]
        calls = set(inner.loc[inner["kind"] == "client", "span_id"])
        for span in inner.itertuples():
            what = "statement" if span.kind == "client" else "wait"
            rows.append((what, span.name, span.node, span.start_s, span.end_s))
        mine = traced.statements[traced.statements["parent_id"].isin(calls)]
        rows += [("database", "", s.node, s.start_s, s.end_s) for s in mine.itertuples()]
    rows.sort(key=lambda row: (row[3], -row[4]))
    return [
        {"what": what, "name": name, "node": node, "at_ms": 1000 * (start - start_s), "ms": 1000 * (end - start)}
        for what, name, node, start, end in rows
    ]
