"""Response-time objectives: which interactions were answered in time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd


def in_time(done: pd.DataFrame, slo_ms: float | None, own: Mapping[str, float]) -> np.ndarray:
    """Whether each row of `done` (interaction, response_time_ms) kept its objective. `own`: objectives of single
    interactions, ms; `slo_ms`: that of all others, without which these always keep it."""
    limit = np.inf if slo_ms is None or pd.isna(slo_ms) else slo_ms
    if own:
        limit = done["interaction"].astype(object).map(own).astype(float).fillna(limit)
    return ((done["response_time_ms"] <= limit) | np.isinf(limit)).to_numpy()
