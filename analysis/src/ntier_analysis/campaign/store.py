"""The store's sweeps as a campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ntier_analysis.campaign.cells import Campaign, campaign, cell
from ntier_analysis.contracts import TopologyError
from ntier_analysis.contracts.versions import tested
from ntier_analysis.errors import DataError
from ntier_analysis.setting import with_one_think_time
from ntier_analysis.store.tables import read_table
from ntier_analysis.trial import manifest_beside
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.wording import counted


def read_campaign(
    store: Path, names: list[str] | None = None, mix: str | None = None, *, join_names: bool = False
) -> Campaign:
    """The campaign of the named sweeps (default: all) with the mix (default: any); join_names as in `campaign`. A sweep
    whose topology has another notation is left out with a warning, unless it was named. Raises DataError for an unknown
    sweep or mix, a named sweep of another notation, or fewer than two sweeps."""
    cells, left_out = [], []
    judged = {v.sweep: v for v in verdicts(store, names or [])}
    there = {name: trials for name in judged if len(trials := read_table(store, "trials", name))}
    mixes = {str(trials["mix"].iloc[0]) for trials in there.values()}
    wanted = {name: trials for name, trials in there.items() if mix in (None, str(trials["mix"].iloc[0]))}
    wanted, as_one = with_one_think_time(wanted)
    for name, trials in wanted.items():
        try:
            cells.append(cell(trials, read_table(store, "nodes", name), judged[name]))
        except TopologyError as error:
            if names:
                raise DataError(f"sweep {name}: {error}") from None
            left_out.append(f"{name} is left out: {error}")
    if mix is not None and mix not in mixes:
        raise DataError(f"no sweep with mix {mix!r} in {store}; there are: {', '.join(sorted(mixes)) or 'none'}")
    if len(cells) < 2:
        told = "".join(f"; {text}" for text in left_out)
        some = f"{counted(len(cells), 'sweep')}{' of those named' if names else ''}{f' with mix {mix}' if mix else ''}"
        raise DataError(f"{store}: {some}; to set topologies beside each other takes two or more{told}")
    mapped = campaign(cells, join_names=join_names)
    versions = _versions(store, [c.sweep for c in mapped.cells])
    return replace(mapped, warnings=[*left_out, *as_one, *mapped.warnings, *versions])


def _versions(store: Path, names: list[str]) -> list[str]:
    """Components under test whose version differs between sweeps, where the raw results tell."""
    seen: dict[str, dict[str, list[str]]] = {}
    for name in names:
        manifest = manifest_beside(store, name)
        for component, version in tested(manifest.versions if manifest else {}).items():
            seen.setdefault(component, {}).setdefault(version, []).append(name)
    warnings = []
    for component, versions in sorted(seen.items()):
        if len(versions) > 1:
            listed = "; ".join(f"{version} in {', '.join(sweeps)}" for version, sweeps in versions.items())
            warnings.append(
                f"{component} differs: {listed}. A difference in the map may come from the version, not from the "
                "topology."
            )
    return warnings
