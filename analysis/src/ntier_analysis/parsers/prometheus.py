"""What a Prometheus has stored, as it comes out: answers of its HTTP API (JSON), or text (`promtool tsdb
dump-openmetrics`, `promtool tsdb dump`)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ntier_analysis.contracts.files import JSON_BYTES, lines, read_bytes, size, stream
from ntier_analysis.errors import DataError

MOST = 30_000_000
"""Samples that are held at most."""
EXPECTED = (
    "expected are answers of /api/v1/query_range or /api/v1/query in JSON, or the text of `promtool tsdb "
    "dump-openmetrics`"
)
_LABEL = re.compile(r'\s*(?:([a-zA-Z_][\w.]*)|"((?:[^"\\]|\\.)*)")\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=\}))')
_NAME = re.compile(r"[a-zA-Z_:][\w:.]*")
_MS = 1e11
"""`dump` writes milliseconds, `dump-openmetrics` seconds."""


@dataclass(frozen=True)
class Series:
    """One metric with its labels (without __name__): times (n,), s, increasing; values (n,), nan where stale."""

    name: str
    labels: dict[str, str]
    t: np.ndarray
    v: np.ndarray


def snapshot(path: Path, wanted: Callable[[str], bool]) -> tuple[list[Series], bool]:
    """The series of the metrics that are wanted, and whether the times may be a grid's (an answer of query_range)
    rather than those of the scrapes. Raises DataError naming file and place."""
    with stream(path) as file:
        head = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        raise DataError(f"{path}: empty; {EXPECTED}")
    if head[:1] == b"[" or re.match(rb'\{\s*"', head):
        return _of_json(path, wanted), True
    return _of_text(path, wanted), False


# ---- JSON ----------------------------------------------------------------------------------------------------------


def _of_json(path: Path, wanted: Callable[[str], bool]) -> list[Series]:
    content = read_bytes(path)
    if len(content) > JSON_BYTES:
        raise DataError(f"{path}: {size(len(content))} of JSON, allowed are at most {size(JSON_BYTES)}; use "
                        "`promtool tsdb dump-openmetrics`")  # fmt: skip
    series: list[Series] = []
    for place, answer in _documents(path, content.removeprefix(b"\xef\xbb\xbf")):
        series += of_answer(answer, place, wanted)
    return joined(series, str(path))


def _documents(path: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    """One answer, a list of them, or one on each line."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        texts = [(n, t) for n, t in enumerate(content.splitlines(), start=1) if t.strip()]
        if len(texts) < 2:
            raise DataError(f"{path}: not JSON ({error}); {EXPECTED}") from None
        for number, text in texts:
            try:
                yield f"{path}:{number}", orjson.loads(text)
            except orjson.JSONDecodeError as wrong:
                raise DataError(f"{path}:{number}: not JSON ({wrong}); {EXPECTED}") from None
        return
    if isinstance(document, list):
        yield from ((f"{path}: answer {n}", answer) for n, answer in enumerate(document, start=1))
    else:
        yield str(path), document


def of_answer(answer: Any, place: str, wanted: Callable[[str], bool]) -> list[Series]:
    """One answer of the API with a matrix. Raises DataError."""
    try:
        if answer["status"] != "success":
            raise DataError(f"{place}: Prometheus answered {str(answer.get('error', answer['status']))[:200]}")
        data = answer["data"]
        if data["resultType"] != "matrix":
            raise DataError(f"{place}: a {str(data['resultType'])[:20]}, expected a matrix: a range of time")
        series = []
        for entry in data["result"]:
            labels = {str(k): str(v) for k, v in entry["metric"].items()}
            name = labels.pop("__name__", None)
            if name is None:
                raise DataError(f"{place}: a series without __name__; ask for plain metrics, not for rate() or sum()")
            values = entry.get("values", [])  # native histograms have none
            if not wanted(name) or not values:
                continue
            t = np.array([float(pair[0]) for pair in values])
            v = np.array([float(pair[1]) for pair in values])
            series.append(Series(name, labels, _times(t, f"{place}: {name}"), v))
        return series
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise DataError(f"{place}: no answer of Prometheus ({said[:200]}); {EXPECTED}") from None


def _times(t: np.ndarray, place: str) -> np.ndarray:
    if not (np.isfinite(t) & (t > 0) & (t < _MS)).all():
        raise DataError(f"{place}: a time that is not in seconds since 1970")
    return t


# ---- text ----------------------------------------------------------------------------------------------------------


def _of_text(path: Path, wanted: Callable[[str], bool]) -> list[Series]:
    held: dict[tuple, tuple[array, array]] = {}
    known: dict[str, tuple | None] = {}
    samples = 0
    for number, line in enumerate(lines(path), start=1):
        try:
            text = line.decode().removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}:{number}: byte {line[error.start]:#x} is not UTF-8") from None
        if not text.strip() or text.startswith("#"):
            continue
        place = f"{path}:{number}"
        key, rest = _split(text, place)
        if key not in known:
            known[key] = _parsed(key, place)
        name, labels = known[key]
        if not wanted(name):
            continue
        t, v = _sample(rest, place, len(key) + 1)
        times, values = held.setdefault((name, labels), (array("d"), array("d")))
        times.append(t)
        values.append(v)
        samples += 1
        if samples > MOST:
            raise DataError(f"{place}: more than {MOST:,} samples; dump a part (--match, --min-time, --max-time)")
    if not known:
        raise DataError(f"{path}: no samples; {EXPECTED}")
    series = [Series(n, dict(labels), np.array(t), np.array(v)) for (n, labels), (t, v) in held.items()]
    return joined(series, str(path))


def _split(text: str, place: str) -> tuple[str, str]:
    """Name with labels, and what follows."""
    brace = text.find("{")
    space = text.find(" ")
    if brace < 0 or 0 <= space < brace:
        return (text[:space], text[space:]) if space > 0 else _no_sample(text, place, len(text))
    end, quoted = brace + 1, False
    while end < len(text) and (quoted or text[end] != "}"):
        if text[end] == "\\" and quoted:
            end += 1
        elif text[end] == '"':
            quoted = not quoted
        end += 1
    if end >= len(text):
        return _no_sample(text, place, len(text))
    return text[: end + 1], text[end + 1 :]


def _no_sample(text: str, place: str, column: int) -> Any:
    raise DataError(f'{place}: column {column}: {text[:60]!r} is no sample, expected name{{label="value"}} value time')


def _parsed(key: str, place: str) -> tuple[str, tuple]:
    name, brace, _ = key.partition("{")
    labels: dict[str, str] = {}
    if name and not _NAME.fullmatch(name):
        _no_sample(key, place, 1)
    at = len(name) + 1
    while brace and key[at:].strip() != "}":
        match = _LABEL.match(key, at)
        if match is None:
            _no_sample(key, place, at + 1)
        label = match[1] or match[2]
        if label in labels:
            raise DataError(f"{place}: column {at + 1}: label {label[:60]!r} is there twice")
        labels[label] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), match[3])
        at = match.end()
    name = labels.pop("__name__", name)
    if not name:
        raise DataError(f"{place}: column 1: a series without a name")
    return name, tuple(sorted(labels.items()))


def _sample(rest: str, place: str, column: int) -> tuple[float, float]:
    fields = rest.split("#", 1)[0].split()
    if len(fields) != 2:
        raise DataError(f"{place}: column {column}: {rest.strip()[:60]!r}, expected a value and its time; the page of "
                        "an exporter has no times")  # fmt: skip
    try:
        value, t = float(fields[0]), float(fields[1])
    except ValueError:
        raise DataError(
            f"{place}: column {column}: {rest.strip()[:60]!r}, expected two numbers: value and time"
        ) from None
    t = t / 1000 if t > _MS else t
    if not 0 < t < _MS:
        raise DataError(f"{place}: column {column}: time is {fields[1][:40]!r}, expected seconds since 1970")
    return t, value


def joined(pieces: list[Series], place: str) -> list[Series]:
    """Series that came in parts, whole and in order of time; what is there twice with one value is there once.

    Raises DataError where one moment has two values."""
    parts: dict[tuple, list[Series]] = {}
    for series in pieces:
        parts.setdefault((series.name, tuple(sorted(series.labels.items()))), []).append(series)
    whole = []
    for (name, _), some in parts.items():
        t, v = np.concatenate([s.t for s in some]), np.concatenate([s.v for s in some])
        order = np.argsort(t, kind="stable")
        t, v = t[order], v[order]
        again = np.diff(t, prepend=-1) == 0
        differ = again[1:] & (v[1:] != v[:-1]) & ~(np.isnan(v[1:]) & np.isnan(v[:-1]))
        if differ.any():
            raise DataError(f"{place}: {name}: two values at {t[1:][differ][0]:.3f}")
        whole.append(Series(name, some[0].labels, t[~again], v[~again]))
    return whole
