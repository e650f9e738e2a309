"""k6's results of single points: `k6 run --out csv=FILE` or `--out json=FILE` (one JSON object a line).

k6 stamps each point of a request with the moment of its completion. Its `http_req_duration` leaves out the wait for a
connection; the response time here is what a user waits: `http_req_blocked`, which includes connecting and TLS, and the
duration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pandas as pd

from ntier_analysis.contracts.files import lines, text_of
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.csvfile import header_line, line_of, names_of, read_csv
from ntier_analysis.parsers.generated import TIMES, Generated, by_completion, seconds_of, spread, steps

DURATION, ITERATION, USERS = "http_req_duration", "iteration_duration", "vus"
BLOCKED = "http_req_blocked"
WANTED = (DURATION, BLOCKED, ITERATION, USERS)
OPTIONAL = ("name", "url", "status", "error_code", "expected_response", "group")
ONCE = ("::setup", "::teardown")
"""Groups of what k6 does before and after the test: no user's."""
FEW, ENDED = 20, 0.95
"""Iterations of each user, and share of the users' time that they take, below which those cut off at the end count."""
CUT = 2.0
"""An iteration that was cut off took at most so many times as long as the longest that ended."""
POINTS = 20_000_000
"""Points of a JSON file that are held at most; CSV has the limit of all tables."""
EXPECTED = "expected is what `k6 run --out csv=FILE` or `--out json=FILE` wrote"


def k6(path: Path) -> Generated:
    """Raises DataError naming file, line and column."""
    first = next(lines(path), b"").lstrip(b"\xef\xbb\xbf \t")
    frame = _of_json(path) if first.startswith(b"{") else _of_csv(path)
    once = frame[frame["group"].str.startswith(ONCE)]
    frame = frame.drop(once.index)
    done = frame[frame["metric"] == DURATION]
    if done.empty:
        raise DataError(f"{path}: no points of {DURATION}: no request of HTTP was made; {EXPECTED}")
    notes = ["whether the load was closed (users) or open (arrival-rate executors): k6 does not write it"]
    if (once["metric"] == DURATION).any():
        notes.append(f"the {(once['metric'] == DURATION).sum()} requests of setup and teardown, which are left out")
    t = done["t_s"].to_numpy()
    if (t == np.floor(t)).all():
        t = spread(t)
        notes.append("times within a second (k6 wrote whole seconds; K6_CSV_TIME_FORMAT=unix_milli writes more)")
    response = done["value"].to_numpy(copy=True)
    blocked = frame.loc[frame["metric"] == BLOCKED, "value"].to_numpy()
    if len(blocked) == len(response):  # k6 writes all points of a request together
        response += blocked
    else:
        notes.append(f"the wait for connections (the file has no {BLOCKED} for each request)")
    status = pd.to_numeric(done["status"], errors="coerce").fillna(0)
    fine = (status > 0) & (status < 400) & (done["error_code"].isin(["", "0"]))
    ok = fine.where(done["expected_response"] == "", done["expected_response"] == "true").to_numpy()
    names = done["name"].where(done["name"] != "", done["url"]).replace("", "request").to_numpy()
    users = frame[frame["metric"] == USERS]
    active = steps(users["t_s"].to_numpy(), users["value"].to_numpy())
    iterations = frame.loc[frame["metric"] == ITERATION, "value"].to_numpy()
    think_s = _think(iterations, response)
    if _many_cut_off(iterations, active["users"].to_numpy()):
        think_s = float("nan")
        notes.append("think times: many iterations did not end, and k6 tells only how long those took that did")
    idle = _idle(iterations, active["users"].to_numpy())
    return Generated(by_completion(t, response, names, ok), active, think_s=think_s, notes=tuple(notes), idle=idle)


def _many_cut_off(iterations_ms: np.ndarray, users: np.ndarray) -> bool:
    """Whether users were in iterations that did not end for much of their time: their requests are there, their thinks
    are not. `users`: of each second. (Users of arrivals at a rate idle between their iterations, which are many.)"""
    few = len(iterations_ms) < FEW * users.max(initial=0)
    return few and iterations_ms.sum() / 1000 < ENDED * users.sum()


def _idle(iterations_ms: np.ndarray, users: np.ndarray) -> float:
    """Share of the users' time that they were in no iteration, beyond what was cut off: each who ends loses one.
    `users`: of each second. Users of closed executors begin the next iteration at once; those of arrivals at a rate
    wait for it, however many were allocated."""
    if not len(iterations_ms) or not users.sum():
        return 0.0
    ends = -np.diff(users, append=0.0)
    lost_s = CUT * iterations_ms.max() / 1000 * ends[ends > 0].sum()
    return float(1 - (iterations_ms.sum() / 1000 + lost_s) / users.sum())


def _think(iterations_ms: np.ndarray, response_ms: np.ndarray) -> float:
    """What users did between their requests: the iterations without their requests, for each request. NaN where the
    file has no iterations, or requests were made side by side."""
    left = (iterations_ms.sum() - response_ms.sum()) / 1000 / len(response_ms)
    return float(left) if len(iterations_ms) and left >= 0 else float("nan")


# ---- CSV -----------------------------------------------------------------------------------------------------------


def _of_csv(path: Path) -> pd.DataFrame:
    if "metric_name" not in names_of(header_line(path)):
        raise DataError(f"{path}:1: no header with metric_name, timestamp, metric_value; {EXPECTED}")
    needed = {"metric_name": "text", "timestamp": "text", "metric_value": "number"}
    raw = read_csv(path, needed, optional=dict.fromkeys(OPTIONAL, "text"), strict=True)
    kept = np.flatnonzero(raw["metric_name"].isin(WANTED).to_numpy())
    frame = raw.iloc[kept].reset_index(drop=True)
    t, wrong = seconds_of(frame["timestamp"])
    values = frame["metric_value"].to_numpy(float)
    bad = np.flatnonzero(wrong | ~(np.isfinite(values) & (values >= 0)))
    if bad.size:
        row = int(bad[0])
        name, expected = ("timestamp", TIMES) if wrong[row] else ("metric_value", "a number >= 0")
        raise DataError(
            f"{path}:{line_of(path, int(kept[row]))}: {name} is {str(frame[name][row])!r}, expected {expected}"
        )
    columns = {"metric": frame["metric_name"], "t_s": t, "value": values}
    return pd.DataFrame(columns | {c: frame.get(c, "") for c in OPTIONAL}).fillna("")


# ---- JSON ----------------------------------------------------------------------------------------------------------


def _of_json(path: Path) -> pd.DataFrame:
    rows: list[tuple] = []
    numbers: list[int] = []
    for number, line in enumerate(lines(path), start=1):
        if number == 1:
            line = text_of(line, path).encode()
        if not line.strip():
            continue
        try:
            point = orjson.loads(line)
            if point["type"] != "Point" or point["metric"] not in WANTED:
                continue
            data = point["data"]
            tags = data.get("tags") or {}
            value = data["value"]
            if not isinstance(value, int | float) or not 0 <= value < 1e15 or isinstance(value, bool):
                raise ValueError(f"value is {str(value)[:40]!r}, expected a number >= 0")
            said = [str(tags.get(c, "")) for c in OPTIONAL]
            rows.append((point["metric"], str(data["time"]), float(value), *said))
        except orjson.JSONDecodeError as error:
            raise DataError(f"{path}:{number}: not JSON ({error}); {EXPECTED}") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path}:{number}: no point of k6 ({said[:200]}); {EXPECTED}") from None
        numbers.append(number)
        if len(rows) > POINTS:
            raise DataError(f"{path}:{number}: more than {POINTS:,} points; import it in parts")
    frame = pd.DataFrame(rows, columns=["metric", "time", "value", *OPTIONAL])
    t, wrong = seconds_of(frame.pop("time"))
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"{path}:{numbers[row]}: time is {rows[row][1][:40]!r}, expected {TIMES}")
    return frame.assign(t_s=t)
