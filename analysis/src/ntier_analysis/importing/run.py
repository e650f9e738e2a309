"""One test that is to be imported: its files and what its user says of it."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ntier_analysis.contracts.files import read_text
from ntier_analysis.contracts.implied import TIERS
from ntier_analysis.contracts.layout import listed_in
from ntier_analysis.contracts.system import LoadModel
from ntier_analysis.errors import DataError
from ntier_analysis.importing.mapping import NodeName
from ntier_analysis.importing.sysstat_files import NodeFile
from ntier_analysis.validity.imported import NO_SERVERS

GENERATORS = ("jtl", "k6", "locust", "gatling")
WHOLE, MOST = ("users", "rep"), 10**9
NOT_NEGATIVE = ("ramp_up_s", "ramp_down_s", "think_time_s", "slo_ms")
_TOPOLOGY = re.compile(r"\d+(/\d+)*[A-Z]*")


@dataclass(frozen=True)
class Run:
    """One test: its files, its load, and when it counts. `users`: it has one load. Without that, and without `loads`,
    each plateau of the users is a trial (importing/loads.py). `ramp_up_s`, `ramp_down_s`: seconds to leave out at begin
    and end of the test, or of each plateau (None: until all threads had started, after the first one ended)."""

    jtl: tuple[Path, ...] = ()
    k6: tuple[Path, ...] = ()
    locust: tuple[Path, ...] = ()
    gatling: tuple[Path, ...] = ()
    """One file per client; Locust's history and its requests are of one client."""
    sa: tuple[NodeFile, ...] = ()
    prometheus: str = ""
    """URL, or file with a snapshot."""
    mapping: Path | None = None
    node: tuple[NodeName, ...] = ()
    """Names of Prometheus' instances, before those of the mapping."""
    prometheus_offset_s: float = 0.0
    loads: Path | None = None
    topology: str = ""
    users: int | None = None
    sweep: str = ""
    trial: str = ""
    rep: int = 1
    ramp_up_s: float | None = None
    ramp_down_s: float | None = None
    think_time_s: float | None = None
    slo_ms: float | None = None
    stamp: str = "start"
    containers: bool = False
    load_model: str = ""
    """closed, open or work; empty: closed, or work if users turn out not to think."""
    tiers: str = ""
    """Tiers from the client inwards, joined by ','; empty: unknown unless they are web, app, middleware, db."""
    notices: list[str] = field(default_factory=list, compare=False)


def read_list(path: Path, common: Run) -> list[Run]:
    """A CSV file with a line per run: jtl (or k6, locust, gatling), sa (several joined by `;`, paths from the file's
    folder) and any of users, topology, sweep, trial, rep, ramp_up_s, ramp_down_s, think_time_s, load_model; what is
    left out is as in `common`."""
    kinds = dict.fromkeys(WHOLE, int) | dict.fromkeys(NOT_NEGATIVE, float)
    allowed = ["jtl", "k6", "locust", "gatling", "sa", "topology", "sweep", "trial", "load_model", *kinds]
    try:
        rows = list(csv.DictReader(read_text(path).splitlines(), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}: not readable as CSV ({error})") from None
    runs = []
    for line, row in enumerate(rows, start=2):
        given = {}
        for name, text in row.items():
            if name not in allowed or text is None:
                raise DataError(f"{path}:{line}: column {name!r}; allowed are {', '.join(allowed)}")
            if not text.strip():
                continue
            try:
                given[name] = kinds.get(name, str)(text.strip())
            except ValueError:
                raise DataError(f"{path}:{line}: {name} is {text[:40]!r}, expected a number") from None
            if expected := _expected(name, given[name]):
                raise DataError(f"{path}:{line}: {name} is {text[:40]!r}, expected {expected}")
        for name, kind in (*((g, lambda t: path.parent / t) for g in GENERATORS),
                           ("sa", lambda t: NodeFile.parse(t, path.parent))):  # fmt: skip
            if name in given:
                given[name] = tuple(kind(part.strip()) for part in given[name].split(";"))
        runs.append(replace(common, notices=[], **given))
    if not runs:
        raise DataError(
            f"{path}: no runs; expected a header with {', '.join(allowed[:2])}, users, ... and a line per run"
        )
    return runs


def _expected(name: str, value: float | str | None) -> str:
    """What is allowed, if this is not."""
    if name == "load_model" and value not in ("", *(m.value for m in LoadModel)):
        return "closed, open or work"
    if name in WHOLE and not (value is None or 1 <= float(value) < MOST):
        return f"a whole number from 1, below {MOST:,}"
    if name in NOT_NEGATIVE and not (value is None or 0 <= float(value) < np.inf):
        return "a number >= 0"
    return ""


def check_request(run: Run) -> None:
    """Raises DataError if files are missing, or exclude each other."""
    for name in (*WHOLE, *NOT_NEGATIVE):
        if expected := _expected(name, value := getattr(run, name)):
            raise DataError(f"{name} is {value}, expected {expected}")
    given = [name for name in GENERATORS if getattr(run, name)]
    if len(given) > 1:
        raise DataError(f"expected files of one load generator, there are --{' and --'.join(given)}")
    if not given and run.loads is None:
        raise DataError(
            "no JTL file: give --jtl FILE (or --k6, --locust, --gatling, or --loads with what was measured)"
        )
    if not run.sa and not run.prometheus:
        raise DataError("no sysstat file: give --sa NODE=FILE[:TIER] for each node (or --prometheus URL or FILE)")
    if run.loads is not None and (run.users or run.trial):
        raise DataError(f"{run.loads}: names users and trials; --users (and trial of --runs) cannot be given with it")
    if expected := _expected("load_model", run.load_model):
        raise DataError(f"--load-model is {run.load_model!r}, expected {expected}")
    of_their_own = any(f.tier not in (*TIERS, *NO_SERVERS) for f in (*run.sa, *run.node)) or run.prometheus
    if not run.topology or not (of_their_own or _TOPOLOGY.fullmatch(run.topology)):
        raise DataError(f"topology {run.topology!r}: expected numbers of nodes per tier, for example 1/2/1/2M")
    names = [file.node for file in run.sa]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise DataError(f"node {twice} has two sysstat files")


def order(run: Run) -> list[str]:
    """The tiers from the client inwards; empty: not known."""
    return listed_in(run.tiers)


def check_order(run: Run, tiers: list[str]) -> None:
    """`tiers`: of all nodes. Raises DataError if the order that is told lacks one."""
    own, listed = [t for t in dict.fromkeys(tiers) if t not in NO_SERVERS], order(run)
    if listed and (len(set(listed)) < len(listed) or not set(own) <= set(listed)):
        raise DataError(f"--tiers is {run.tiers!r}, expected each of {', '.join(own)} once, from the client inwards")
    if not listed and not set(own) <= set(TIERS):
        run.notices.append(f"the order of the tiers {', '.join(own)} is unknown: give --tiers")
