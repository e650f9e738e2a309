"""Where single interactions spent their time: the request of each one's page is found in the web servers' logs, which
carry no id, by its address and by the moments that client and server saw."""

from __future__ import annotations

import numpy as np
import pandas as pd

SLACK_S = 0.003
"""Both logs have whole milliseconds, each rounded its own way, and clocks are known to 1 ms or so."""
EARLY_S, LATE_S = 0.05, 0.02
"""When the server ended a page: at most so long before, and after, the client got its first byte. On a full system 98.5
to 99.3 % of the requests were within; of those that were not, the client itself had waited for its CPU."""


def with_requests(slow: pd.DataFrame, done: pd.DataFrame, web: pd.DataFrame) -> pd.DataFrame:
    """`slow`, some rows of `done`, with `web_start_s, web_end_s, web_node, app_node` of the page's request, and
    `candidates`, how many requests it may be. The request is known only if there is one, and no other interaction may
    have made it. Else its columns are NaN and empty, and `candidates` is 0, or 2 and more.

    done: all interactions of the trial (`start_s, page_s, t_s, url`). web: all requests (`start_s, t_s, url, node,
    app_node`). Times in s, of one clock."""
    by_url, theirs = dict(iter(web.groupby("url"))), dict(iter(done.groupby("url")))
    rows = []
    for page in slow.itertuples():
        requests = by_url.get(page.url, web.iloc[:0])
        may_be = requests[fits(page.start_s, page.page_s, page.t_s, requests["start_s"], requests["t_s"])]
        found = None
        if len(may_be) == 1:
            (request,) = may_be.itertuples()
            others = theirs[page.url]
            claims = fits(others["start_s"], others["page_s"], others["t_s"], request.start_s, request.t_s)
            found = request if int(np.sum(claims)) == 1 else None
        rows.append(
            (found.start_s, found.t_s, found.node, found.app_node, 1)
            if found is not None
            else (np.nan, np.nan, "", "", max(2, len(may_be)) if len(may_be) else 0)
        )
    columns = ["web_start_s", "web_end_s", "web_node", "app_node", "candidates"]
    return slow.assign(**pd.DataFrame(rows, columns=columns, index=slow.index))


def fits(start_s, page_s, end_s, web_start_s, web_end_s):
    """Whether a request from `web_start_s` to `web_end_s` can be the page of an interaction from `start_s` to `end_s`
    whose first byte came at `page_s`; one of both may be arrays."""
    inside = (web_start_s >= start_s - SLACK_S) & (web_end_s <= end_s + SLACK_S)
    return inside & (web_end_s >= page_s - EARLY_S) & (web_end_s <= page_s + LATE_S)


def segments(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of `with_requests` -> their time in ms: `before` the web server began with the page, `within` it and all
    behind it, `after` it had ended; NaN where the request is not known. What is below 0 by the logs' milliseconds is
    0."""
    before = 1000 * (rows["web_start_s"] - rows["start_s"])
    within = 1000 * (rows["web_end_s"] - rows["web_start_s"])
    parts = pd.DataFrame({"before": before.clip(lower=0), "within": within})
    return parts.assign(after=(rows["response_time_ms"] - parts["before"] - parts["within"]).clip(lower=0))
