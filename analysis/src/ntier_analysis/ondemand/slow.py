"""`ntier-analysis slow`: the slowest interactions of a trial, and which part of the system held them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.files import check_file
from ntier_analysis.errors import DataError
from ntier_analysis.figures.waterfall import waterfall
from ntier_analysis.ondemand.command import FORMATS, of_trial, write
from ntier_analysis.ondemand.followed import called, clocks, on_one_clock, requests, traced_of, with_parts
from ntier_analysis.places import raw_beside
from ntier_analysis.report.data import SweepData, read_sweep
from ntier_analysis.setting import IMPORTED
from ntier_analysis.statistics.traces import BEHIND_WEB, Traced, course
from ntier_analysis.statistics.waterfalls import with_requests
from ntier_analysis.trial import RawTrial

FULL_PCT = 95.0  # the threshold of a saturation
SHOWN_FULL = 0.5  # share of its time in which a CPU was full, from which on it is named beside the interaction
NOT_SEEN = (
    "No log says how much of the time behind {server} an interaction spent in which tier; what was full meanwhile "
    "tells of the node, not of this interaction."
)
SEEN = (
    "Traced interactions carry an id through all tiers. 'server' ({server}) includes the way to {program} and the wait "
    "for a thread of it, 'between' is {between} with the ways there. 'behind': of statements too short for the log of "
    "{database}, what may have been there. '?': not told apart."
)


def run(
    store: Path,
    sweep: str,
    trial: str,
    top: int,
    raw: Path | None,
    out: Path | None,
    *,
    json: bool,
    traced: bool = False,
) -> str:
    """Text (or JSON) of the `top` slowest interactions, of the traced ones if `traced`; draws them into `out`. Raises
    DataError."""
    if out is not None and out.suffix not in FORMATS:
        raise DataError(f"--out {out}: unknown format; allowed are {', '.join(f'*{f}' for f in FORMATS)}")
    if out is not None:
        check_file(out, "--out")
    data = read_sweep(store, sweep, raw)
    chosen = of_trial(data, trial, data.interactions["trial"])
    source = data.raw_trials.get(chosen.trial)
    if source is None and chosen.target == IMPORTED:
        raise DataError(f"{sweep}: imported; slow needs the logs of raw trials, which an import does not have")
    if source is None:
        place = raw / sweep if raw else raw_beside(store, sweep)
        raise DataError(f"{place}: no raw files of {chosen.trial}; only they show single requests (--raw FOLDER)")
    done = on_one_clock(source)
    start, end = source.run
    inside = done[(done["t_s"] >= start) & (done["t_s"] < end)]
    if inside.empty:
        raise DataError(f"{source.folder}: no interaction was completed in the run phase")
    followed = inside[inside["trace_id"] != ""]
    if traced and followed.empty:
        raise DataError(f"{source.folder}: no interaction was traced; a sweep with TRACE=100 traces one of 100")
    among, web, names = followed if traced else inside, requests(source), called(source)
    everything = traced_of(source, web) if len(followed) else None
    slowest = among.sort_values("response_time_ms", ascending=False, kind="stable").head(top)
    rows = with_parts(with_requests(slowest, done, web), everything)
    rows["user"] = rows["client"] + "/" + rows["user"].astype(str)
    rows["held"] = [_held(row, names) for row in rows.itertuples()]
    rows["meanwhile"] = [_full(data, chosen.trial, row) for row in rows.itertuples()]
    finding = _finding(rows, len(among), names["server"], traced=traced)
    if traced:
        finding += _shares(with_parts(followed.assign(candidates=0), everything), names)
    if not chosen.valid:
        finding += f" The trial is INVALID ({chosen.invalid_reasons}), so this may not be the system's own."
    notes = _notes(source, rows, names)
    if len(followed) and not traced:
        notes.append(f"{len(followed)} of {len(inside):,} are traced: --traced chooses among them.")
    if out is not None:
        caption = f"{sweep}, trial {chosen.trial}, run phase of {end - start:g} s. {' '.join(notes)}"
        write(waterfall(rows, finding, caption, names), data.origin, out)
    if json:
        head = {"sweep": sweep, "trial": chosen.trial, "interactions": len(among), "finding": finding}
        return _json(rows, head, NOT_SEEN.format_map(names), notes, everything)
    shown = _course(rows, everything) if everything is not None else []
    return "\n".join(
        [f"{sweep}, trial {chosen.trial}: {finding}", "", _table(rows, names["server"]), "", *shown, *notes]
    )


def _notes(source: RawTrial, rows: pd.DataFrame, names: dict[str, str]) -> list[str]:
    """How the requests were found, and what the parts do not tell."""
    known = rows["trace_id"] != ""
    notes = [] if known.all() else [_matching(rows[~known])]
    notes += [SEEN.format_map(names), clocks(source, rows, names["server"])] if known.any() else []
    return notes if known.all() else [*notes, NOT_SEEN.format_map(names)]


def _full(data: SweepData, trial: str, row) -> str:
    """`db1 CPU full 97 %`: nodes whose CPU was full for most of the time of the page's request (if that is not known,
    of the whole interaction), the fullest first."""
    begin, end = (row.web_start_s, row.web_end_s) if row.candidates == 1 else (row.start_s, row.t_s)
    cpu = data.cpu[(data.cpu["trial"] == trial) & data.cpu["t_s"].between(begin, end)]
    shares = (cpu["value"] >= FULL_PCT).groupby(cpu["node"]).mean().sort_values(ascending=False)
    return ", ".join(f"{node} CPU full {100 * share:.0f} %" for node, share in shares.items() if share >= SHOWN_FULL)


def _held(row, names: dict[str, str]) -> str:
    """Where most of its time passed."""
    if row.candidates != 1:
        return "unknown"
    parts = {f"before {row.web_node}": row.before, "after the page": row.after}
    if pd.isna(row.program):
        parts[f"{row.web_node}, {row.app_node} and behind"] = row.within
    else:
        parts |= {
            f"{row.web_node} or the wait for a thread of {row.app_node}": row.server,
            f"the wait for a connection of {row.app_node}": row.wait,
            row.app_node: row.program,
            names["between"]: row.between,
            row.db_node or names["database"]: row.database,
            names["behind"]: row.behind,
        }
    return max(parts, key=parts.__getitem__)


def _finding(rows: pd.DataFrame, of: int, server: str, *, traced: bool) -> str:
    known = rows[rows["candidates"] == 1]
    text = f"The slowest of {of:,} {'traced ' * traced}interactions took {rows['response_time_ms'].max() / 1000:.2f} s"
    if known.empty:
        return f"{text}; for none of these {len(rows)} its request is known."
    sums = known[["before", "within", "after"]].sum()
    shares = {name: 100 * value / sums.sum() for name, value in sums.items()}
    shown = f"the {len(rows)} shown" if len(known) == len(rows) else f"{len(known)} shown whose request is known"
    return (
        f"{text}. Of the time of {shown}, {shares['before']:.0f} % passed before {server} began with it, "
        f"{shares['within']:.0f} % in it and behind it, {shares['after']:.0f} % after the page."
    )


def _shares(rows: pd.DataFrame, names: dict[str, str]) -> str:
    """Where the time of all traced interactions passed: a sample of the trial's."""
    known = rows[(rows["candidates"] == 1) & rows["program"].notna()]
    if known.empty:
        return f" None of them could be followed behind {names['server']}."
    sums = known[["before", *BEHIND_WEB, "after"]].astype(float).sum()
    server = names["server"]
    told = names | {"before": f"until {server} began", "server": f"{server} and the wait for a thread",
                    "wait": "wait for a connection", "after": "after the page"}  # fmt: skip
    parts = [f"{told[n]} {100 * v / sums.sum():.0f} %" for n, v in sums.items() if v >= 0.005 * sums.sum()]
    return f" Of the time of all {len(known)} that were followed to the end: {', '.join(parts)}."


def _matching(rows: pd.DataFrame) -> str:
    unknown, none = int((rows["candidates"] > 1).sum()), int((rows["candidates"] == 0).sum())
    text = "Requests are found in the access logs by address and time, since they carry no id"
    parts = [f"{unknown} may be several" * bool(unknown), f"{none} fit none" * bool(none)]
    return f"{text}: {', '.join(filter(None, parts))}." if unknown or none else f"{text}; each fits exactly one."


def _table(rows: pd.DataFrame, server: str) -> str:
    within = f"{server} and behind"
    shown = rows.rename(columns={"response_time_ms": "ms", "within": within})
    parts = [*BEHIND_WEB] if (rows["trace_id"] != "").any() else []
    shown = shown[["ms", "interaction", "user", "before", within, *parts, "after", "held", "meanwhile"]]
    return shown.to_string(index=False, float_format="{:.0f}".format, na_rep="?")


def _course(rows: pd.DataFrame, traced: Traced) -> list[str]:
    """The slowest traced interaction in the order of time."""
    depth = {"server": 1, "program": 2, "wait": 3, "statement": 3, "database": 4}
    for row in rows[rows["trace_id"] != ""].head(1).itertuples():
        lines = [
            f"{row.interaction} of {row.user}, trace {row.trace_id}; begin since the user's click, and length, ms:"
        ]
        for step in course(traced.of(row.trace_id), row.start_s):
            text = "  " * depth[step["what"]] + " ".join(filter(None, (step["node"], step["what"], step["name"])))
            lines.append(f"{step['at_ms']:9.1f} {step['ms']:9.1f} {text[:100]}")
        return [*lines, *([row.missing] if row.missing else []), ""]
    return []


def _json(rows: pd.DataFrame, head: dict, not_seen: str, notes: list[str], traced: Traced | None) -> str:
    import orjson

    names = ["start_s", "t_s", "interaction", "user", "url", "response_time_ms", "connect_ms", "ok", "before", "within",
             "after", "held", "web_node", "app_node", "candidates", "meanwhile"]  # fmt: skip
    more = [] if traced is None else ["trace_id", *BEHIND_WEB, "db_node", "missing"]
    called = {name: f"{name}_ms" for name in ("before", "within", "after", *BEHIND_WEB)}
    shown = rows[[*names, *more]].rename(columns=called)
    records = shown.astype(object).where(shown.notna(), None).to_dict("records")
    if traced is not None:
        for record in records:
            record["course"] = course(traced.of(record["trace_id"]), record["start_s"]) if record["trace_id"] else []
    document = head | {"slowest": records} | ({"not_seen": not_seen} if traced is None else {"notes": notes})
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode()
