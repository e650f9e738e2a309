from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import synthetic
from ntier_analysis.contracts import Check, Manifest, Outcome, Validity
from ntier_analysis.ingest import ingest_sweep
from ntier_analysis.report import page, write_report
from pictures import no_drawn_pictures, no_picture_files

LOADS = (1000, 2000, 3000, 5000, 6000, 7000, 8000)
INVALID = 7000
COMMAND = "make sweep TOPO=1/1/1/1M USERS=1000:8000:1000"
DEMANDS_S = {"web": 0.0004, "app": 0.0012, "middleware": 0.0007, "db": 0.00175}
"""The db saturates first: at 0.1 cores / 1.75 ms = 57/s, near 4,000 nominal users."""


@dataclass(frozen=True)
class Written:
    """A report and what it was made from."""

    store: Path
    sweep: str
    page: Path
    loads: tuple[int, ...] = LOADS
    invalid: int = INVALID
    command: str = COMMAND

    @property
    def folder(self) -> Path:
        return self.page.parent

    @property
    def html(self) -> str:
        return self.page.read_text()


def _judged(folder: Path, users: int) -> None:
    """Adds what the harness writes before it seals: validity, command, versions."""
    manifest = Manifest.read(folder)
    outcome = Outcome.FAIL if users == INVALID else Outcome.PASS
    busy = Check(
        id="H1", title="Host CPU, 95th percentile of 1-s means", required=True, outcome=outcome, limit=90.0, unit="pct",
        value=97.0 if users == INVALID else 30.0, n=40, reason="host_saturated", detail="the host was <b>97 % busy</b>",
    )  # fmt: skip
    drift = Check(
        id="S1", title="Throughput drift over the run", required=False, outcome=Outcome.UNDECIDABLE, limit=5.0,
        unit="pct", value=3.0, n=10, standard_error=4.0, detail="the run is too short to tell",
    )  # fmt: skip
    manifest.validity = Validity(valid=users != INVALID, checks=[busy, drift])
    manifest.command, manifest.git_commit, manifest.git_clean = COMMAND, "0123abc", True
    manifest.versions = {"mysql": "9.7.0", "tomcat": "10.1.34"}
    manifest.soft_resources = {"app": {"threads": 33, "pool_size": 2}}
    manifest.slo_ms = 2000.0
    manifest.write(folder)


@pytest.fixture(scope="session")
def report(made_once) -> Written:
    """The report of a synthetic sweep, from raw files through the store."""
    base = made_once("report", _made)
    (page,) = base.glob("reports/*/report.html")
    return Written(base / "store", page.parent.name, page)


@pytest.fixture
def page_alone() -> Iterator[None]:
    """For tests of what a page says; `report` has the files of the pictures, and other tests look at them."""
    with no_picture_files():
        yield


@pytest.fixture
def page_undrawn() -> Iterator[None]:
    """For tests of what a page says with figures as usual: they are made, with their texts and plots, and not drawn."""
    with no_drawn_pictures():
        yield


@pytest.fixture
def words_alone(monkeypatch) -> None:
    """For tests of what a page says besides its figures: there are none."""
    for name in ("load_figures", "density_figures", "detail_sections"):
        monkeypatch.setattr(page, name, lambda data: [])


def _made(base: Path) -> None:
    for number, users in enumerate(LOADS):
        truth = synthetic.Truth(demand_s=DEMANDS_S)
        start_s = synthetic.T0 + 120.0 * number
        spec = synthetic.Spec(
            users=users, truth=truth, phases=(20.0, 40.0, 5.0), seed=users, start_s=start_s, seal=False
        )
        _judged(synthetic.write_trial(base / "raw", spec), users)
    found = ingest_sweep(base / "raw" / spec.sweep, base / "store")
    assert found.problems == []
    write_report(base / "store", found.sweep, base / "reports")
