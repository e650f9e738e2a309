"""The store's sweeps as a campaign."""

from __future__ import annotations

from pathlib import Path

from ntier_analysis.campaign.cells import Campaign, campaign, cell
from ntier_analysis.contracts import TopologyError
from ntier_analysis.errors import DataError
from ntier_analysis.store.tables import read_table
from ntier_analysis.verdict.store import verdicts


def read_campaign(
    store: Path, names: list[str] | None = None, mix: str | None = None, *, join_names: bool = False
) -> Campaign:
    """Of the named sweeps (default: all) with the mix (default: any); join_names as in `campaign`. Raises DataError for
    an unknown sweep or mix, an unreadable topology, or fewer than two sweeps."""
    cells, mixes = [], set()
    judged = {v.sweep: v for v in verdicts(store, names or [])}
    for name in judged:
        trials = read_table(store, "trials", name)
        if trials.empty:
            continue
        mixes.add(str(trials["mix"].iloc[0]))
        if mix is not None and str(trials["mix"].iloc[0]) != mix:
            continue
        try:
            cells.append(cell(trials, read_table(store, "nodes", name), judged[name]))
        except TopologyError as error:
            raise DataError(f"sweep {name}: {error}") from None
    if mix is not None and mix not in mixes:
        raise DataError(f"no sweep with mix {mix!r} in {store}; there are: {', '.join(sorted(mixes)) or 'none'}")
    if len(cells) < 2:
        raise DataError(f"{store} holds {len(cells)} sweep(s) to map; a map takes two topologies or more")
    return campaign(cells, join_names=join_names)
