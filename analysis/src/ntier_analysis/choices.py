"""What the middleware chose in a raw trial: rows of the store's table choices."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ntier_analysis.parsers.trace import seen_pending
from ntier_analysis.statistics.balance import choice_table, natural
from ntier_analysis.trial import RawTrial


def of_trial(trial: RawTrial) -> pd.DataFrame | None:
    """Rows of each middleware node that wrote a trace, without the trial's keys; None if none did. The replicas are
    those of the node's status. Raises DataError if a trace is wrong."""
    parts = []
    for node, frame in trial.traces.items():
        status, _ = trial.samples_of(node, "middleware_status")
        replicas = natural(status.loc[status["metric"] == "statements_per_s", "item"])
        chosen = (frame["choice_ns"] > 0).to_numpy()
        seen = np.full((len(frame), len(replicas)), np.nan)
        seen[chosen] = seen_pending(frame.loc[chosen, "seen"], len(replicas))
        parts.append(choice_table(frame, replicas, seen, *trial.run).assign(node=node))
    return pd.concat(parts, ignore_index=True) if parts else None
