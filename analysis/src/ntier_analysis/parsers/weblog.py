"""Access log of the web tier: what the web server says it answered, for the cross-check against the client's log."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from ntier_analysis.contracts.files import lines
from ntier_analysis.parsers.spans import CONTEXT

# t_s (start, epoch) duration_us status bytes_sent app_node "request line", and if interactions are traced "traceparent"
_LINE = re.compile(rb'^(\d+\.\d+) (\d+) (\d{3}) (\d+|-) (\S+) "([A-Z]+) (\S+)[^"]*"(?: "([^"]*)")?$')
_IMAGES = (b".gif", b".png", b".jpg", b".jpeg", b".svg", b".ico")


def access_log(path: Path, *, addresses: bool = False) -> pd.DataFrame:
    """-> `start_s, t_s` (completion), `status, bytes, app_node, image` (flag), in the file's order. `addresses`: also
    `url`, path and query, and `trace_id`, empty for a request without a trace context.

    Lines that do not follow the format are counted in `frame.attrs["garbled_lines"]` (their numbers), never dropped
    silently: the check of completeness (C5) fails on them."""
    start, duration, status, size, nodes, image, garbled, urls, traces = [], [], [], [], [], [], [], [], []
    for number, line in enumerate(lines(path), start=1):
        match = _LINE.match(line)
        if not match:
            garbled.append(number)
            continue
        start.append(float(match[1]))
        duration.append(int(match[2]))
        status.append(int(match[3]))
        size.append(0 if match[4] == b"-" else int(match[4]))
        nodes.append(match[5].decode())
        image.append(match[7].partition(b"?")[0].lower().endswith(_IMAGES))
        if addresses:
            urls.append(match[7].decode(errors="replace"))
            context = CONTEXT.fullmatch(match[8] or b"")
            traces.append(context[1].decode() if context else "")
    begun = np.array(start, dtype=float)
    frame = pd.DataFrame(
        {
            "start_s": begun,
            "t_s": begun + np.array(duration, dtype=float) / 1e6,
            "status": np.array(status, dtype=int),
            "bytes": np.array(size, dtype=int),
            "app_node": nodes,
            "image": np.array(image, dtype=bool),
        }
    )
    if addresses:
        frame["url"] = pd.Series(urls, dtype="str")
        frame["trace_id"] = pd.Series(traces, dtype="str")
    frame.attrs["garbled_lines"] = garbled
    return frame
