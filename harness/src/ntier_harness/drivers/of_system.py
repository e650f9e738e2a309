"""The driver that a system names (`load: driver:` of its system.yaml), and what of it goes to the clients."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.nodes import Node
from ntier_analysis.contracts.system import LoadModel

from ntier_harness.catalog import Phases
from ntier_harness.drivers import Command, Driver, Entry, Run
from ntier_harness.drivers.jmeter import JMeter, Walks
from ntier_harness.errors import RequestError, unknown
from ntier_harness.files import read_json
from ntier_harness.systems import System

if TYPE_CHECKING:
    from ntier_harness.lab import Lab
    from ntier_harness.spec import Spec

LOAD = "/opt/ntier/load"  # of a client node: files of the system's driver, without the folders they had
WORKLOADS = "/opt/ntier/workloads"  # of a client node: files of `workloads/`, which every client has


def files(system: System, workloads: Path) -> list[Path]:
    """What is copied to LOAD on each client: the plan, the mixes, the words of the command that are files of the
    system, and `files`. `workloads`: what lies below is on the clients already. Raises RequestError for one that is
    missing, and for two of one name."""
    paths = _copied(system, workloads)
    place = f"{system.folder / 'system.yaml'}: load.driver"
    for path in paths:
        if not path.exists():
            raise RequestError(f"{place}: {path} does not exist")
    if name := twice(system, workloads):
        raise RequestError(f"{place}: two files have the name {name}; on a client all are in one folder")
    return paths


def _copied(system: System, workloads: Path) -> list[Path]:
    return [path for path in named(system) if not path.is_relative_to(workloads.resolve())]


def twice(system: System, workloads: Path) -> str:
    """The name that two of the files that are copied have; empty if there is none."""
    counts = Counter(path.name for path in _copied(system, workloads))
    return next((name for name, n in counts.items() if n > 1), "")


def named(system: System) -> list[Path]:
    """All that the driver's part of the definition names: plan, mixes, words of the command that are files, `files`."""
    load = system.definition.load
    words = [word for word in load.driver.command if is_file(word, system)]
    names = [*load.driver.files, *words, *filter(None, (load.driver.plan, load.mixes))]
    return list(dict.fromkeys(map(system.path, names)))


def is_file(word: str, system: System) -> bool:
    """Whether a word of a command names a file of the system: a program of the node has no slash, or begins with it."""
    return "/" in word and not word.startswith("/") and system.path(word).is_file()


def on_client(path: Path, workloads: Path) -> str:
    """Where a file that the system names is on a client."""
    if path.is_relative_to(workloads.resolve()):
        return f"{WORKLOADS}/{path.relative_to(workloads.resolve()).as_posix()}"
    return f"{LOAD}/{path.name}"


def make(
    system: System, workloads: Path, properties: Mapping[str, Any] | None = None, walks: Walks | None = None
) -> Driver:
    """`properties`: of the workload, which win. A command is told them as parameters of the run."""
    program = system.definition.load.driver
    properties = dict(program.properties) | dict(properties or {})
    if program.kind == "jmeter":
        assert program.plan
        return JMeter(on_client(system.path(program.plan), workloads), program.own_thread_group, properties, walks)
    words = (on_client(system.path(w), workloads) if is_file(w, system) else w for w in program.command)
    return Command(tuple(words), properties)


def run_and_driver(
    lab: Lab, spec: Spec, directory: str, workers: int, phases: Phases, seed: int, *,
    value: float | None = None, think_time_s: float | None = None, keep: int = 0, leavers: int = 0,
) -> tuple[Run, Driver]:  # fmt: skip
    """The load of a request for one run. `value`: of the sweep's factor, if it is a parameter of the driver;
    `think_time_s`: another mean than the workload's; `keep`: as in `Walks`; `leavers`: as in `Run`."""
    system, mix, load = spec.system, spec.mix, spec.system.definition.load
    think_time_s = (think_time_s or mix.think_time_s) if load.model is LoadModel.CLOSED else None
    run = Run(
        directory, workers, phases, seed, Entry(load.entry.tier, load.entry.port, load.entry.path), load.model,
        think_time_s, mix.name, spec.parameters(value), leavers,
    )  # fmt: skip
    walks = None
    if load.mixes and mix.file:
        tables = on_client(system.path(load.mixes), lab.paths.workloads)
        every = 0 if keep else spec.trace_every
        loaded = spec.data_folder if spec.loads_data else ""
        walks = Walks(mix, tables, keep, of_data(system, lab.paths.data, lab.nodes.all, loaded), every)
    return run, make(system, lab.paths.workloads, mix.properties, walks)


def of_data(system: System, folder: Path, nodes: Iterable[Node], loaded: str = "") -> dict[str, str]:
    """What the driver is told of the data (`data: told:` of the system). `folder`: of all data; `data.json` is written
    there when they are generated. `loaded`: name of what roles loaded, where no image has it. Without it the plan's
    defaults hold. Raises RequestError for a name that it lacks."""
    records = [folder / image / "data.json" for image in {n.image for n in nodes if n.image} | {loaded or "none"}]
    records = [file for file in records if file.exists()]
    if len(records) != 1 or system.definition.data is None:
        return {}
    facts = read_json(records[0])
    if "reference_time_s" in facts:
        facts["reference_date"] = datetime.datetime.fromtimestamp(facts["reference_time_s"], datetime.UTC).date()
    try:
        return {name: text.format(**facts) for name, text in system.definition.data.told.items()}
    except KeyError as error:
        place = f"{system.folder / 'system.yaml'}: data.told"
        raise unknown(place, error.args[0], sorted(facts), f" (of {records[0]})") from None
