"""The samples of a Prometheus server as they were scraped (`/api/v1/query` of a range), page by page.

`query_range` would show a value again at each of its steps until the next scrape, for up to five minutes."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import orjson

from ntier_analysis.contracts.files import JSON_BYTES, size
from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import Mapping
from ntier_analysis.parsers.prometheus import Series, joined, of_answer
from ntier_analysis.store.validation import LONGEST_S

PAGE_S = 600
"""What is asked for at once."""
WAIT_S = 30
TOOK = "scrape_duration_seconds"
"""Prometheus' own metric of each target, with its labels: how long a scrape took. A scrape is dated at its beginning;
the counters in it were read at some time until its end."""


def is_url(source: str) -> bool:
    return "://" in source


def asked(source: str, mapping: Mapping, start_s: float, end_s: float) -> list[Series]:
    try:
        parts = urllib.parse.urlsplit(source)
        known = parts.scheme in ("http", "https") and bool(parts.netloc) and parts.port != 0
    except ValueError:  # a bracket that is not closed, or a port that is none
        known = False
    if not known:
        raise _no_address(source)
    if end_s - start_s > LONGEST_S:
        raise DataError(f"--prometheus {source}: the loads span {(end_s - start_s) / 86400:.0f} days, allowed are 11")
    url = source.rstrip("/") + "/api/v1/query?"
    wanted = [(name, e.where) for e in mapping.exporters.values() for name in sorted(e.metrics)] + [(TOOK, {})]
    series: list[Series] = []
    for name, where in wanted:
        labels = ",".join(f"{k}=~{orjson.dumps(v).decode()}" for k, v in (mapping.match | where).items())
        for begin in np.arange(start_s, end_s, PAGE_S):
            until = min(begin + PAGE_S, end_s)
            query = {"query": f"{name}{{{labels}}}[{int(np.ceil(until - begin))}s]", "time": f"{until:.3f}"}
            answer = _get(url + urllib.parse.urlencode(query), source)
            series += of_answer(answer, f"{source}: {name}", name.__eq__)
    return joined(series, source)  # a sample at the border of two pages comes twice


def _no_address(source: str) -> DataError:
    return DataError(f"--prometheus {source}: expected http://HOST:PORT, https://..., or a file")


def _get(url: str, source: str) -> object:
    try:
        status, content = _answer(url)
    except http.client.InvalidURL:  # a space
        raise _no_address(source) from None
    except http.client.HTTPException as error:  # what it says may be another protocol's bytes
        what = f"no answer of HTTP: {type(error).__name__}"
        raise DataError(f"--prometheus {source}: cannot be reached ({what}); is this a Prometheus server?") from None
    except (OSError, ValueError) as error:
        raise DataError(f"--prometheus {source}: cannot be reached ({getattr(error, 'reason', error)})") from None
    if status:
        raise DataError(f"--prometheus {source}: {status}")
    if len(content) > JSON_BYTES:
        raise DataError(
            f"--prometheus {source}: more than {size(JSON_BYTES)} for {PAGE_S} s of one metric; narrow `match`"
        )
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise DataError(f"--prometheus {source}: the answer is not JSON; is this a Prometheus server?") from None


def _answer(url: str) -> tuple[str, bytes]:
    """What is wrong with the status (nothing, if the answer says it itself), and the answer."""
    try:
        with urllib.request.build_opener().open(url, timeout=WAIT_S) as answer:
            return "", answer.read(JSON_BYTES + 1)
    except urllib.error.HTTPError as error:
        wrong = error.code not in (400, 422, 503)
        return f"HTTP {error.code} {error.reason}" if wrong else "", error.read(2000)
