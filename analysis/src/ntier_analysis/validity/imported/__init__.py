"""I: what can be checked of a trial that another system measured (docs/validity.md). The modules register their checks
in this order: load, nodes."""

from __future__ import annotations

import numpy as np

from ntier_analysis.contracts import Check, Outcome
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.validity.imported.load import LAW, NO_THINK, WORKERS
from ntier_analysis.validity.imported.nodes import like_shares, topology
from ntier_analysis.validity.imported.trial import CLIENTS, HOSTS, NO_SERVERS, REGISTERED, SCRAPE, Imported, checks

__all__ = [
    "LAW",
    "NO_SERVERS",
    "NO_THINK",
    "REGISTERED",
    "SCRAPE",
    "WORKERS",
    "Imported",
    "checks",
    "like_shares",
    "not_validated",
    "reasons",
    "topology",
]


def not_validated(trial: Imported, *, think_time_given: bool) -> str:
    """What no check has examined, joined by '; '."""
    texts = ["whether users were late (generator lag) or died", "think times as drawn", "the mix", "clocks"]
    if not trial.cpu_of(CLIENTS):
        texts.append("the client's CPU")
    if not trial.cpu_of(HOSTS):
        texts.append("the host's CPU, stolen time and quotas")
    if trial.completed is None:
        texts.append("single interactions (throughput and response times are taken as given)")
    if np.isnan(trial.number("errors")):
        texts.append("errors")
    if not think_time_given and trial.model is LoadModel.CLOSED:
        texts.append(f"the think time ({trial.number('think_time_s'):g} s assumed)")
    if topology(trial).n == 0:
        texts.append("the topology against the nodes")
    return "; ".join(texts)


def reasons(checks: list[Check]) -> list[str]:
    """Reasons of the checks that invalidate the trial, each once."""
    return list(dict.fromkeys(c.reason for c in checks if c.required and c.outcome is not Outcome.PASS))
