"""What raw trials tell of single interactions, on one clock: the client's rows, the web servers' requests, and of those
that are traced the spans and statements of the tiers behind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd

from ntier_analysis.parsers import client, weblog
from ntier_analysis.statistics.traces import BEHIND_WEB, NO_LINE, Traced, parted
from ntier_analysis.statistics.waterfalls import segments
from ntier_analysis.trial import RawTrial


def _clock_error_s(raw: RawTrial, nodes: Iterable[str]) -> float | None:
    """How far the clocks of two of these nodes may be apart after correction, s: half of the round trips in which the
    offsets were measured, and half of how far they moved; None if that is not recorded of one."""
    errors = []
    for node in nodes:
        clocks = raw.manifest.clock_offsets_s.get(node, {})
        trips = [clocks[k] for k in ("rtt_before", "rtt_after") if k in clocks]
        offsets = [clocks[k] for k in ("offset_before", "offset_after") if k in clocks]
        if not trips:
            return None
        errors.append(max(trips) / 2 + (max(offsets) - min(offsets)) / 2)
    return sum(sorted(errors)[-2:])


def clocks(raw: RawTrial, rows: pd.DataFrame, server: str) -> str:
    nodes = {*rows["client"], *filter(None, rows["web_node"])} & set(raw.nodes)
    error_s = _clock_error_s(raw, sorted(nodes))
    known = "by an unknown time" if error_s is None else f"by up to {1000 * error_s:.1f} ms"
    return f"Clocks of client and {server} may differ {known}: so much may be 'before' instead of 'after'."


def on_one_clock(raw: RawTrial) -> pd.DataFrame:
    """All interactions; `trace_id` is empty where none was carried."""
    frame = raw.of_clients("interactions.jtl.csv", partial(client.interactions, addresses=True))
    ahead = frame["client"].map({name: raw.clock_ahead_s(name) for name in raw.clients})
    followed = raw.traced_interactions
    ids = followed.set_index(["client", "user", "start_ms"])["trace_id"].to_dict()
    begun = (1000 * frame["start_s"]).round().astype("int64")
    frame["trace_id"] = [ids.get(key, "") for key in zip(frame["client"], frame["user"], begun, strict=True)]
    return frame.assign(**{c: frame[c] - ahead for c in ("start_s", "page_s", "t_s")})


def requests(raw: RawTrial) -> pd.DataFrame:
    """Pages that the web servers answered, of all their logs; empty if they keep none."""
    parts = []
    for name in raw.logged:
        log = weblog.access_log(raw.required(f"nodes/{name}/logs/access.log"), addresses=True)
        pages = log[~log["image"]]
        ahead = raw.clock_ahead_s(name)
        parts.append(pages.assign(node=name, start_s=pages["start_s"] - ahead, t_s=pages["t_s"] - ahead))
    empty = pd.DataFrame(columns=["start_s", "t_s", "url", "node", "app_node", "image", "trace_id"])
    return pd.concat(parts, ignore_index=True) if parts else empty


def traced_of(raw: RawTrial, web: pd.DataFrame) -> Traced:
    """What the tiers wrote of traced interactions, on the controller's clock."""

    def together(parts: dict[str, pd.DataFrame], columns: list[str]) -> pd.DataFrame:
        moved = []
        for node, frame in parts.items():
            ahead = raw.clock_ahead_s(node)
            moved.append(frame.assign(node=node, start_s=frame["start_s"] - ahead, end_s=frame["end_s"] - ahead))
        moved = [frame for frame in moved if len(frame)]
        return pd.concat(moved, ignore_index=True) if moved else pd.DataFrame(columns=columns)

    ids = ["trace_id", "parent_id", "start_s", "end_s", "node"]
    spans = together(raw.spans, [*ids, "span_id", "kind", "name"])
    return Traced(web, spans, together(raw.logged_statements, ids), _unlogged_ms(raw))


def _unlogged_ms(raw: RawTrial) -> float:
    """How long a statement can have been in a database without being logged: its threshold, for each step that is
    logged apart. Not known if a database's log is missing, or if nobody noted the threshold."""
    threshold_ms = raw.manifest.soft_resources.get("ntier_trace_statement_ms")
    databases = raw.of_tier(raw.system.order[-1])
    if threshold_ms is None or not set(databases) <= set(raw.logged_statements):
        return float("inf")
    steps = max(frame.attrs["steps"] for frame in raw.logged_statements.values())
    return float(threshold_ms) * steps


def with_parts(rows: pd.DataFrame, traced: Traced | None) -> pd.DataFrame:
    """Rows of `with_requests` with the parts of their time, ms; of the traced ones, all that the tiers wrote."""
    fresh = dict.fromkeys(BEHIND_WEB, np.nan) | {"db_node": "", "missing": ""}
    rows = rows.assign(**fresh)
    if traced is None:
        return rows.assign(**segments(rows))
    of_ids, nothing = _by_trace(traced), traced.of("none")
    found = {index: parted(of_ids.get(name, nothing)) for index, name in rows["trace_id"].items() if name}
    if found:
        told = pd.DataFrame.from_dict(found, orient="index")
        for name in told.columns:
            rows[name] = told[name].reindex(rows.index).where(rows["trace_id"] != "", rows.get(name))
        known = (rows["trace_id"] == "") | (rows["missing"] != NO_LINE)
        rows["candidates"] = rows["candidates"].where(rows["trace_id"] == "", known.astype(int))
    return rows.assign(**segments(rows))


def _by_trace(traced: Traced) -> dict[str, Traced]:
    ids = set(traced.web["trace_id"]) - {""}
    groups = [dict(iter(f.groupby("trace_id"))) for f in (traced.web, traced.spans, traced.statements)]
    frames = (traced.web, traced.spans, traced.statements)
    return {
        i: Traced(*(g.get(i, f.iloc[:0]) for g, f in zip(groups, frames, strict=True)), traced.unlogged_ms) for i in ids
    }


def called(raw: RawTrial) -> dict[str, str]:
    """Parts by the tiers in which they pass: `server`, the first; `program`, which writes spans, else
    the second; `database`, the last. Those between the latter two are behind the program's statements."""
    order = raw.system.order
    writers = [order.index(raw.nodes[n].tier) for n in raw.spans if raw.nodes[n].tier in order]
    program, last = min(writers, default=min(1, len(order) - 1)), order[-1]
    tiers = " and ".join(order[program + 1 : -1])
    return {
        "server": order[0],
        "program": order[program],
        "between": tiers or f"the way to {last}",
        "database": last,
        "behind": f"{tiers} or {last}" if tiers else f"{last} or the way to it",
    }
