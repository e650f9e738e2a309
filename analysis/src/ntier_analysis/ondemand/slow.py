"""`ntier-analysis slow`: the slowest interactions of a trial, and which part of the system held them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from ntier_analysis.contracts.files import check_file
from ntier_analysis.errors import DataError
from ntier_analysis.figures.waterfall import waterfall
from ntier_analysis.ondemand.command import FORMATS, of_trial, write
from ntier_analysis.parsers import client, weblog
from ntier_analysis.places import raw_beside
from ntier_analysis.report.data import SweepData, read_sweep
from ntier_analysis.statistics.waterfalls import segments, with_requests
from ntier_analysis.trial import RawTrial

FULL_PCT = 95.0  # the threshold of a saturation
SHOWN_FULL = 0.5  # share of its time in which a CPU was full, from which on it is named beside the interaction
NOT_SEEN = (
    "No log says how much of the time behind the web server an interaction spent in the application, the middleware "
    "and the databases; what was full meanwhile tells of the node, not of this interaction."
)


def run(store: Path, sweep: str, trial: str, top: int, raw: Path | None, out: Path | None, *, json: bool) -> str:
    """Text (or JSON) of the `top` slowest interactions; draws them into `out`. Raises DataError."""
    if out is not None and out.suffix not in FORMATS:
        raise DataError(f"--out {out}: unknown format; allowed are {', '.join(f'*{f}' for f in FORMATS)}")
    if out is not None:
        check_file(out, "--out")
    data = read_sweep(store, sweep, raw)
    chosen = of_trial(data, trial, data.interactions["trial"])
    source = data.raw_trials.get(chosen.trial)
    if source is None:
        place = raw / sweep if raw else raw_beside(store, sweep)
        raise DataError(f"{place}: no raw files of {chosen.trial}; only they show single requests (--raw FOLDER)")
    done = _on_one_clock(source)
    start, end = source.run
    inside = done[(done["t_s"] >= start) & (done["t_s"] < end)]
    if inside.empty:
        raise DataError(f"{source.folder}: no interaction was completed in the run phase")
    slowest = inside.sort_values("response_time_ms", ascending=False, kind="stable").head(top)
    rows = with_requests(slowest, done, _requests(source))
    rows = rows.assign(user=rows["client"] + "/" + rows["user"].astype(str), **segments(rows))
    rows["held"] = [_held(row) for row in rows.itertuples()]
    rows["meanwhile"] = [_full(data, chosen.trial, row) for row in rows.itertuples()]
    finding = _finding(rows, len(inside))
    if not chosen.valid:
        finding += f" The trial is INVALID ({chosen.invalid_reasons}), so this may not be the system's own."
    caption = f"{sweep}, trial {chosen.trial}, run phase of {end - start:g} s. {_matching(rows)} {NOT_SEEN}"
    if out is not None:
        write(waterfall(rows, finding, caption), data.origin, out)
    if json:
        return _json(rows, {"sweep": sweep, "trial": chosen.trial, "interactions": len(inside), "finding": finding})
    return "\n".join([f"{sweep}, trial {chosen.trial}: {finding}", "", _table(rows), "", _matching(rows), NOT_SEEN])


def _offset(raw: RawTrial, node: str) -> float:
    """How far the node's clock was ahead of the controller's, s: the mean of before and after the trial; 0 if that is
    not recorded."""
    clocks = raw.manifest.clock_offsets_s.get(node, {})
    known = [clocks[k] for k in ("offset_before", "offset_after") if k in clocks]
    return sum(known) / len(known) if known else 0.0


def _on_one_clock(raw: RawTrial) -> pd.DataFrame:
    frame = raw.of_clients("interactions.jtl.csv", partial(client.interactions, addresses=True))
    ahead = frame["client"].map({name: _offset(raw, name) for name in raw.clients})
    return frame.assign(**{c: frame[c] - ahead for c in ("start_s", "page_s", "t_s")})


def _requests(raw: RawTrial) -> pd.DataFrame:
    """Pages that the web servers answered, of all their logs; empty if they keep none."""
    parts = []
    for name in raw.logged:
        log = weblog.access_log(raw.required(f"nodes/{name}/logs/access.log"), addresses=True)
        pages = log[~log["image"]]
        ahead = _offset(raw, name)
        parts.append(pages.assign(node=name, start_s=pages["start_s"] - ahead, t_s=pages["t_s"] - ahead))
    empty = pd.DataFrame(columns=["start_s", "t_s", "url", "node", "app_node"])
    return pd.concat(parts, ignore_index=True) if parts else empty


def _full(data: SweepData, trial: str, row) -> str:
    """`db1 CPU full 97 %`: nodes whose CPU was full for most of the time of the page's request (if that is not known,
    of the whole interaction), the fullest first."""
    begin, end = (row.web_start_s, row.web_end_s) if row.candidates == 1 else (row.start_s, row.t_s)
    cpu = data.cpu[(data.cpu["trial"] == trial) & data.cpu["t_s"].between(begin, end)]
    shares = (cpu["value"] >= FULL_PCT).groupby(cpu["node"]).mean().sort_values(ascending=False)
    return ", ".join(f"{node} CPU full {100 * share:.0f} %" for node, share in shares.items() if share >= SHOWN_FULL)


def _held(row) -> str:
    """Where most of its time passed."""
    if row.candidates != 1:
        return "unknown"
    parts = {
        f"before {row.web_node}": row.before,
        f"{row.web_node}, {row.app_node} and behind": row.within,
        "after the page": row.after,
    }
    return max(parts, key=parts.__getitem__)


def _finding(rows: pd.DataFrame, of: int) -> str:
    known = rows[rows["candidates"] == 1]
    text = f"The slowest of {of:,} interactions took {rows['response_time_ms'].max() / 1000:.2f} s"
    if known.empty:
        return f"{text}; for none of these {len(rows)} its request is known."
    sums = known[["before", "within", "after"]].sum()
    shares = {name: 100 * value / sums.sum() for name, value in sums.items()}
    return (
        f"{text}; of the time of the {len(known)} with known requests {shares['before']:.0f} % passed before the web "
        f"server began, {shares['within']:.0f} % in it and behind it, {shares['after']:.0f} % after the page."
    )


def _matching(rows: pd.DataFrame) -> str:
    unknown, none = int((rows["candidates"] > 1).sum()), int((rows["candidates"] == 0).sum())
    text = "Requests are found in the access logs by address and time, since they carry no id"
    parts = [f"{unknown} may be several" * bool(unknown), f"{none} fit none" * bool(none)]
    return f"{text}: {', '.join(filter(None, parts))}." if unknown or none else f"{text}; each fits exactly one."


def _table(rows: pd.DataFrame) -> str:
    shown = rows.rename(columns={"response_time_ms": "ms", "within": "web and behind"})
    shown = shown[["ms", "interaction", "user", "before", "web and behind", "after", "held", "meanwhile"]]
    return shown.to_string(index=False, float_format="{:.0f}".format, na_rep="?")


def _json(rows: pd.DataFrame, head: dict) -> str:
    import orjson

    names = ["start_s", "t_s", "interaction", "user", "url", "response_time_ms", "connect_ms", "ok", "before", "within",
             "after", "held", "web_node", "app_node", "candidates", "meanwhile"]  # fmt: skip
    shown = rows[names].rename(columns={name: f"{name}_ms" for name in ("before", "within", "after")})
    records = shown.astype(object).where(shown.notna(), None).to_dict("records")
    document = head | {"slowest": records, "not_seen": NOT_SEEN}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode()
