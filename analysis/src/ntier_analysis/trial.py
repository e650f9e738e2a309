"""One raw trial: its manifest and its files, each parsed once, when it is first asked for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import orjson
import pandas as pd
from pandas.api.extensions import ExtensionArray

from ntier_analysis.contracts import Manifest, Node
from ntier_analysis.contracts.files import DOCUMENT_BYTES, JSON_BYTES, RECORD_BYTES, STREAM_BYTES, opened, read_bytes
from ntier_analysis.contracts.system import LoadModel, System
from ntier_analysis.errors import DataError
from ntier_analysis.labels import chosen
from ntier_analysis.parsers import client, host, spans, status, sysstat, trace, weblog
from ntier_analysis.places import raw_beside

T = TypeVar("T")

# collector -> (parser, nominal interval in s); the CPU sampler is apart, since it needs the node's capacity
STATUS = {
    "mysql_status": status.mysql_status,
    "postgresql_status": status.postgresql_status,
    "apache_status": status.apache_status,
    "tomcat_status": status.tomcat_status,
    "middleware_status": status.middleware_status,
    "ndb_status": status.ndb_status,
    "ndb_threads": status.ndb_threads,
}
LOGGING = "apache_status"
"""Collector of a web server whose role keeps an access log, too."""
NOMINAL_S = dict.fromkeys(("cgroup_cpu", "host_stat", "procstat"), host.NOMINAL_CPU_S)
"""Sampling intervals, s; every other collector writes once a second."""


def manifest_beside(store: Path, sweep: str) -> Manifest | None:
    """Taken from a valid trial of the sweep if the raw results lie beside the store, else from any trial; None if there
    is none."""
    manifests = []
    for path in sorted(raw_beside(store, sweep, "manifest.json").glob("*/manifest.json")):
        with suppress(OSError, ValueError):
            manifests.append(Manifest.read(path.parent))
    return next((m for m in manifests if m.valid), manifests[0] if manifests else None)


class RawTrial:
    """A folder `results/raw/<sweep>/<trial>/`. Raises DataError where its files do not follow the contract."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._remembered: dict[Callable, Any] = {}
        self.manifest = Manifest.read(folder)

    def remember(self, function: Callable[[RawTrial], T]) -> T:
        """The function's value for this trial, computed once (also what several checks share)."""
        if function not in self._remembered:
            self._remembered[function] = function(self)
        return self._remembered[function]

    # ---- system ----

    @cached_property
    def system(self) -> System:
        return self.manifest.described

    @cached_property
    def _jmeter(self) -> dict | None:
        """JMeter's properties; empty if another program makes the load, None if that is not recorded. Raises
        DataError."""
        name = "config/driver.json"
        if self.manifest.system is None or self.path(name) is None:
            return None
        told = self.json(name).get("jmeter", {})
        if not (isinstance(told, dict) and isinstance(told.get("properties", {}), dict)):
            raise DataError(f"{self.folder / name}: jmeter is {told!r}, expected an object with properties")
        return told

    @property
    def strict(self) -> bool:
        """Whether its client is JMeter with this project's plug-in, which writes all files of a client; always so
        before manifests named their system. The driver's properties decide; if they are lost, all files are
        expected."""
        return self._jmeter is None or "ntier.mix" in self._jmeter.get("properties", {})

    @property
    def jvm_logged(self) -> bool:
        """Whether JMeter makes the load: its JVM logs the pauses of its collector."""
        return self._jmeter != {}

    @property
    def load_model(self) -> LoadModel:
        return self.system.load_model

    def of_tier(self, tier: str) -> list[str]:
        """Names of its nodes, in the manifest's order."""
        return [name for name, node in self.nodes.items() if node.tier == tier]

    # ---- phases and nodes ----

    @property
    def run(self) -> tuple[float, float]:
        """Start and end of the run phase, epoch s."""
        return self.bounds("run")

    def bounds(self, phase: str) -> tuple[float, float]:
        named = next((p for p in self.manifest.phases if p.name == phase), None)
        if named is None or named.start_s is None or named.end_s is None or not named.end_s > named.start_s:
            raise DataError(f"{self.folder / 'manifest.json'}: phase {phase} has no start and end")
        return named.start_s, named.end_s

    def phase_of(self, t: np.ndarray) -> ExtensionArray:
        """Label of each time: ramp_up, run, ramp_down or outside (ends are exclusive)."""
        labels, codes = ["outside"], np.zeros(len(t), np.int32)
        for phase in self.manifest.phases:
            if phase.start_s is not None and phase.end_s is not None:
                codes[(t >= phase.start_s) & (t < phase.end_s)] = len(labels)
                labels.append(phase.name)
        return chosen(labels, codes)

    @property
    def nodes(self) -> dict[str, Node]:
        return {n.name: n for n in self.manifest.nodes}

    @property
    def host_cores(self) -> int:
        if self.manifest.host is None:
            raise DataError(f"{self.folder / 'manifest.json'}: host is missing (number of cores)")
        return self.manifest.host.cores

    def capacity_cores(self, node: str) -> float:
        """CPU capacity in cores: the node's limit, or all of the host's cores if it has none."""
        known = self.nodes.get(node)
        return known.cpu_cores if known is not None and known.cpu_cores else float(self.host_cores)

    @property
    def own_machines(self) -> bool:
        """Whether each node is a machine of its own, sampled from inside; else one host carries them all."""
        return self.manifest.target != "local"

    @property
    def cpu_collector(self) -> str:
        """Collector of the nodes' CPU."""
        return "procstat" if self.own_machines else "cgroup_cpu"

    def clock_ahead_s(self, node: str) -> float:
        """How far the node's clock was ahead of the controller's, s: the mean of before and after the trial; 0 if that
        is not recorded."""
        clocks = self.manifest.clock_offsets_s.get(node, {})
        known = [clocks[k] for k in ("offset_before", "offset_after") if k in clocks]
        return sum(known) / len(known) if known else 0.0

    @property
    def clients(self) -> list[str]:
        return sorted(p.name for p in (self.folder / "clients").glob("*") if p.is_dir())

    # ---- files ----

    def path(self, relative: str) -> Path | None:
        """The file, compressed or not; None if there is none."""
        plain = self.folder / relative
        packed = plain.with_name(plain.name + ".zst")
        return plain if plain.is_file() else packed if packed.is_file() else None

    def sysstat_file(self, node: str) -> Path | None:
        """The JSON that the node made of sysstat's file, which names its disks; else the file itself."""
        return self.path(f"nodes/{node}/sysstat.json") or self.path(f"nodes/{node}/sysstat.sa")

    def written_by(self, node: str, collector: str) -> Path | None:
        """File of a collector; None if it left none."""
        return self.sysstat_file(node) if collector == "sysstat" else self.path(f"nodes/{node}/{collector}.csv")

    def required(self, relative: str) -> Path:
        path = self.path(relative)
        if path is None:
            raise DataError(f"{self.folder / relative}: file is missing")
        return path

    def of_clients(self, name: str, parser) -> pd.DataFrame:
        if not self.clients:
            folder = self.folder / "clients"
            why = "no client wrote anything" if folder.is_dir() else "missing; this needs the raw files of the trial"
            raise DataError(f"{folder}: {why}")
        parts = [parser(self.required(f"clients/{c}/{name}")).assign(client=c) for c in self.clients]
        joined = pd.concat(parts, ignore_index=True)
        joined.attrs["torn_lines"] = sum(p.attrs.get("torn_lines", 0) for p in parts)
        return joined

    def wrote(self, name: str) -> bool:
        """Whether the clients wrote this file, or should have."""
        return self.strict or any(self.path(f"clients/{c}/{name}") for c in self.clients)

    def first_user(self, client: str) -> int:
        """Number of the client's first user: users are split among the clients (`ntier.first_user`; of a driver without
        that, `first_worker`). Raises DataError if it is no number."""
        path = self.path(f"clients/{client}/ntier.properties")
        text = read_bytes(path, DOCUMENT_BYTES) if path else b""
        if match := re.search(rb"^ntier\.first_user=(\d{1,9})$", text, re.MULTILINE):
            return int(match[1])
        name = f"clients/{client}/driver.json"
        first = self.json(name).get("first_worker", 0) if self.path(name) else 0
        if type(first) is not int or not 0 <= first < 10**9:
            raise DataError(f"{self.folder / name}: first_worker is {first!r}, expected an integer from 0 to 999999999")
        return first

    @cached_property
    def interactions(self) -> pd.DataFrame:
        return self.of_clients("interactions.jtl.csv", client.interactions)

    @cached_property
    def run_interactions(self) -> pd.DataFrame:
        """Those of `interactions` that were completed in the run phase."""
        start, end = self.run
        return self.interactions[(self.interactions["t_s"] >= start) & (self.interactions["t_s"] < end)]

    @cached_property
    def thinks(self) -> pd.DataFrame:
        return self.of_clients("thinks.csv", client.thinks)

    @cached_property
    def users(self) -> pd.DataFrame:
        return self.of_clients("users.csv", client.users)

    @property
    def taken_along(self) -> int:
        """Requests under way of users who left before the run: a server may answer them later, and they count
        nowhere."""
        if not self.manifest.leavers or not self.wrote("users.csv"):
            return 0
        return int(((self.users["pending_s"] > 0) & (self.users["end_s"] <= self.run[0])).sum())

    @cached_property
    def progress(self) -> pd.DataFrame:
        return self.of_clients("progress.csv", client.progress)

    @cached_property
    def _sources(self) -> dict[tuple[str, str], tuple[pd.DataFrame, int]]:
        return {}

    def samples_of(self, node: str, collector: str) -> tuple[pd.DataFrame, int]:
        """Tidy samples of one collector of one node (`host` = the machine beneath), and how often one of its counters
        ran backwards. Raises DataError if the file is missing or wrong."""
        key = node, collector
        if key not in self._sources:
            self._sources[key] = self._parse(node, collector)
        return self._sources[key]

    def _parse(self, node: str, collector: str) -> tuple[pd.DataFrame, int]:
        known = self.nodes.get(node)
        if collector == "sysstat":
            path = self.sysstat_file(node) or self.required(f"nodes/{node}/sysstat.json")
            content, made = read_bytes(path), self.path(f"nodes/{node}/sysstat.sa")
            if len(content) > JSON_BYTES and made:  # many CPUs for long: what it was made of says it in less
                path, content = made, read_bytes(made)
            limit = known.network_bits_s if known else None
            return sysstat.sysstat(path, own_machine=self.own_machines, network_bits_s=limit, content=content), 0
        path = self.required(f"nodes/{node}/{collector}.csv")
        if collector == "cgroup_cpu":
            return host.cgroup_cpu(path, self.capacity_cores(node))
        if collector == "cgroup_mem_io":
            return host.cgroup_mem_io(path, *((known.memory_bytes, known.disk_bytes_s) if known else (None, None)))
        if collector == "host_stat":
            return host.host_stat(path)
        if collector == "procstat":
            return host.procstat(path)
        if collector == "tcp":
            return host.tcp(path)
        if collector == "pressure":
            return host.pressure(path)
        if collector == "canary":
            return host.canary(path), 0
        if collector in STATUS:
            return STATUS[collector](path)
        if self.manifest.system is not None and collector in self.manifest.collectors.get(node, ()):
            return status.own_status(path)
        raise DataError(f"{path}: unknown collector {collector!r}; known are {', '.join(self.known_collectors)}")

    known_collectors = (
        "cgroup_cpu",
        "cgroup_mem_io",
        "host_stat",
        "procstat",
        "pressure",
        "tcp",
        "canary",
        "sysstat",
        *STATUS,
    )

    def collectors(self) -> list[tuple[str, str]]:
        """(node, collector) that the manifest says were started, and those whose files are there beside."""
        declared = [
            pair for n, names in self.manifest.collectors.items() for c in names for pair in self._declared(n, c)
        ]
        listed = []
        for folder in sorted((self.folder / "nodes").glob("*")):
            for file in sorted(folder.iterdir()):
                name = file.name.removesuffix(".zst")
                stem = name.rpartition(".")[0]
                if stem in self.known_collectors and name in (f"{stem}.csv", "sysstat.json", "sysstat.sa"):
                    listed.append((folder.name, stem))
        return list(dict.fromkeys(declared + listed))

    def _declared(self, node: str, collector: str) -> list[tuple[str, str]]:
        """The host's sampler writes a file per node."""
        if node == "host" and collector.startswith("cgroup_"):
            return [(name, collector) for name in self.nodes]
        return [(node, collector)]

    @property
    def logged(self) -> list[str]:
        """Nodes of the first tier, whose access logs tell of every request; none if none of them keeps one."""
        names = self.of_tier(self.system.order[0])
        kept = self.must_log or any(self.path(f"nodes/{name}/logs/access.log") for name in names)
        return names if kept else []

    @property
    def must_log(self) -> bool:
        """Whether the first tier keeps access logs, with the node that each request was sent to: by the collectors that
        were started on it. All did before manifests named their system."""
        started = (self.manifest.collectors.get(name, []) for name in self.of_tier(self.system.order[0]))
        return self.manifest.system is None or any(LOGGING in names for names in started)

    @cached_property
    def web_logs(self) -> dict[str, pd.DataFrame]:
        """Access log of each node of the first tier. Raises DataError if one is missing."""
        return {name: weblog.access_log(self.required(f"nodes/{name}/logs/access.log")) for name in self.logged}

    @cached_property
    def traces(self) -> dict[str, pd.DataFrame]:
        """Trace of each middleware node that wrote one."""
        paths = {name: self.path(f"nodes/{name}/logs/middleware_trace.csv") for name in self.nodes}
        return {name: trace.middleware_trace(path) for name, path in paths.items() if path}

    @cached_property
    def traced_interactions(self) -> pd.DataFrame:
        """`client, user, start_ms, trace_id` of the interactions that carried a trace context; `user` counts within the
        client, as in `interactions`. Empty if none did."""
        found = [pd.DataFrame(columns=["client", "user", "start_ms", "trace_id"])]
        for name in self.clients:
            if path := self.path(f"clients/{name}/traces.csv"):
                rows = spans.traced(path)
                found.append(rows.assign(client=name, user=rows["user"] - self.first_user(name)))
        return pd.concat(found[1:] or found, ignore_index=True)

    @cached_property
    def spans(self) -> dict[str, pd.DataFrame]:
        """Spans of each node that wrote some."""
        paths = {name: self.path(f"nodes/{name}/logs/spans.csv") for name in self.nodes}
        return {name: spans.spans(path) for name, path in paths.items() if path}

    @cached_property
    def logged_statements(self) -> dict[str, pd.DataFrame]:
        """Statements with a trace context in the logs of each database that has such a log."""
        found = {}
        for name in self.nodes:
            if path := self.path(f"nodes/{name}/logs/statements.log"):
                found[name] = spans.mysql_statements(path)
            for log in sorted((self.folder / "nodes" / name / "logs").glob("postgresql*.log*")):
                found[name] = spans.postgresql_statements(log)
        return found

    def facts(self, node: str, moment: str) -> dict:
        """`facts_before.json` or `facts_after.json` of a node."""
        return self.json(f"nodes/{node}/facts_{moment}.json")

    def json(self, relative: str) -> dict:
        """A JSON object of the trial. Raises DataError if it is missing or not one."""
        path = self.required(relative)
        try:
            document = orjson.loads(read_bytes(path, RECORD_BYTES))
        except orjson.JSONDecodeError as error:
            raise DataError(f"{path}: not JSON ({error})") from error
        if not isinstance(document, dict):
            raise DataError(f"{path}: expected a JSON object with keys and values")
        return document

    def altered_files(self) -> list[str]:
        """Files that are missing or differ from the manifest's size or SHA-256. Empty = all as sealed."""
        wrong = []
        for entry in self.manifest.files:
            path = self.folder / entry.path
            if not path.resolve().is_relative_to(self.folder.resolve()):
                wrong.append(f"{entry.path} (outside the trial)")
            elif not path.is_file():
                wrong.append(f"{entry.path} (missing)")
            elif path.stat().st_size != entry.bytes:
                wrong.append(f"{entry.path} ({path.stat().st_size} bytes, sealed with {entry.bytes})")
            elif _sha256(path) != entry.sha256:
                wrong.append(f"{entry.path} (SHA-256 differs)")
        return wrong


def _sha256(path: Path) -> str:
    with opened(path, STREAM_BYTES) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
