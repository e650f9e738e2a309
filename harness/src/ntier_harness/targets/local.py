"""The local target: Incus system containers on this machine, provisioned by Terraform, limited by control groups."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ntier_analysis.contracts.nodes import Node, read_nodes

from ntier_harness import awake, durable, machine, scale
from ntier_harness.errors import RequestError, Unanswered, WorkError
from ntier_harness.paths import Paths
from ntier_harness.runner import Done, Runner
from ntier_harness.sampler import CGROUP, find_group, first_process, is_v2, processes_of
from ntier_harness.screen import size
from ntier_harness.spec import CLIENT, Spec
from ntier_harness.ssh import Nodes, check_place
from ntier_harness.targets import Reading
from ntier_harness.targets.free import Free
from ntier_harness.targets.terraform import Terraform, common_variables

if TYPE_CHECKING:
    from ntier_harness.doctor import Finding
    from ntier_harness.lab import Lab

PROJECT = "ntier"
NETWORK = ipaddress.ip_network("198.18.0.0/15")  # reserved for benchmarking (RFC 2544)
SADC = machine.sadc()
PERIODS_MS = range(10, 101)  # short ones first: with 100 ms a throttled node stalls for up to 90 ms at a time
NO_DISK_LIMIT = "1TiB"  # per second; Incus 6.0 takes a limit away from its record, but not from the control group
COLLECTOR = b"NTIER_COLLECTOR="  # in the environment of what `ntier-node start` started, and of what that started
BESIDE_QUOTA = "ntier_sysstat"  # control group
COLLECTOR_NICE = -20  # servers have 0; with -10 sysstat of a full node lost readings in 3 of 6 trials
CLIENT_BYTES, USER_BYTES = 0.4e9, 200_000  # resident, as measured
ROUNDING = 0.015  # how far 1 ms per period may be from a share of less than a tenth of a core


def quota_ms(cpu_cores: float) -> tuple[int, int]:
    """CPU and period, both in milliseconds: 0.2 cores are (2, 10), 0.15 are (3, 20), 0.03 are (1, 33).

    Raises RequestError for a share that whole milliseconds cannot give."""
    for period in PERIODS_MS:
        quota = round(cpu_cores * period)
        if quota and abs(quota / period / cpu_cores - 1) <= (ROUNDING if quota == 1 else 1e-6):
            return quota, period
    raise RequestError(f"scale: {cpu_cores} cores are no whole number of ms in any period up to {PERIODS_MS[-1]} ms")


def granted(node: Node) -> Node:
    """The node with the CPU that whole milliseconds give it; its utilization is relative to that."""
    if not node.cpu_cores:
        return node
    quota, period = quota_ms(node.cpu_cores)
    return node.model_copy(update={"cpu_cores": round(quota / period, 6)})


READ = ["-P", "ALL", "-u", "-r", "-S", "-W", "-B", "-w", "-q", "-d", "-n", "DEV,TCP,ETCP,SOCK", "-m", "CPU"]
"""What the analysis reads of sysstat's file, as on the nodes (ansible/roles/monitor/files/ntier-node)."""


class HostSampling:
    """The control groups of all nodes and the machine beneath them, sampled from outside the nodes. The machine's CPUs
    stay awake meanwhile."""

    collectors = ["cgroup_cpu", "cgroup_mem_io", "host_stat", "pressure", "canary", "sysstat"]  # noqa: RUF012 (never changed)

    def __init__(self, runner: Runner, directory: Path, groups: list[str], *, awake_too: bool) -> None:
        self.runner = runner
        self.out = directory / "nodes"
        self.log = directory / "logs" / "sampler.log"
        (self.out / "host").mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(exist_ok=True)
        self.awake = awake.start(runner) if awake_too else None
        told = ["--awake", str(self.awake.pid)] if self.awake else []
        program = Path(__file__).parents[1] / "sampler.py"
        self.sampler = runner.spawn([sys.executable, "-I", str(program), str(self.out), *groups, *told], self.log)
        self.sadc = runner.spawn([SADC, "-S", "XALL", "1", str(self._sysstat)])

    @property
    def _sysstat(self) -> Path:
        return self.out / "host" / "sysstat.sa"

    def problem(self) -> str | None:
        ended = self.sampler.poll() is not None
        return f"collector_dead: the sampler on the host ended (see {self.log})" if ended else None

    def busy(self) -> dict[str, Reading]:
        try:
            latest = json.loads((self.out / "latest.json").read_text())
            return {node: Reading(latest["t_s"], share) for node, share in latest["busy"].items()}
        except (OSError, ValueError, KeyError):
            return {}

    def stop(self) -> None:
        self.sampler.stop()
        self.sadc.stop()
        if self.awake:
            self.awake.stop()

    def finish(self) -> None:
        for file in [self.out / "latest.json", *self.out.glob(".latest*")]:
            file.unlink(missing_ok=True)
        if self._sysstat.exists():
            json_file = self._sysstat.with_suffix(".json")
            try:
                self.runner.fetch(["sadf", "-j", str(self._sysstat), "--", *READ], json_file, 30)
            except WorkError:  # the analysis reads sysstat's own file, too
                json_file.unlink(missing_ok=True)


def memory_needed(spec: Spec) -> int:
    """Resident bytes of all nodes together, about."""
    clients = CLIENT_BYTES * spec.clients + spec.real_users(spec.most_users) * USER_BYTES
    return round(clients + sum(spec.tier(t).resident_bytes * n for t, n in spec.topology.counts.items()))


class Local(Free):
    """Provisioning and limits of the local target."""

    name = "local"
    own_machines = False
    playbooks = ("deploy",)
    needs_inventory = False
    scaled = True

    def __init__(self, runner: Runner, paths: Paths, _file: Path | None = None) -> None:
        self.runner = runner
        self.paths = paths
        self._terraform = Terraform(runner, paths)
        self.root = self._terraform.root
        self.terraform = self._terraform.program

    def require_privileges(self) -> None:
        """Raises RequestError unless this process may use control groups and Incus."""
        if os.geteuid() != 0:
            raise RequestError("privileges: the local target needs root (control groups, Incus); try with sudo")

    def require_answer(self) -> None:
        """Raises Unanswered unless Incus answers: where there is no systemd it ends with the session."""
        if not self.runner.has("incus"):
            raise Unanswered("target: Incus is not installed; run: make setup")
        try:
            self.runner.run(["incus", "query", "/1.0"], timeout=20)
        except WorkError as error:  # an error, or no answer in time
            raise Unanswered(f"target: Incus does not answer ({error}); start it with: make setup") from None

    # ---- what may be asked of it --------------------------------------------------------------------------------

    parse_scale = staticmethod(scale.parse_scale)

    @staticmethod
    def images(spec: Spec) -> tuple[str, ...]:
        """What its nodes are copies of."""
        return (*dict.fromkeys(spec.image(tier) for tier in spec.topology.counts), CLIENT)

    def check(self, spec: Spec) -> None:
        """Containers can be made here, and there is memory for them. Raises RequestError."""
        if not (machine.is_linux() and self.runner.has("incus")) and (obstacle := machine.obstacle()):
            raise RequestError(f"target: {obstacle}")
        self.stays_awake()  # a word that it does not know is refused here
        needed, available = memory_needed(spec) - self._memory_taken(spec), machine.memory_info()["MemAvailable"]
        if available < needed:
            raise RequestError(
                f"memory: the nodes need about {size(needed)}, {size(available)} are available; free some, "
                "give a smaller --scale, or use a smaller topology"
            )

    def _memory_taken(self, spec: Spec) -> float:
        """Bytes of what is needed that the nodes which are up take already, or give back before others are made; about,
        and of nodes of another system the most that they may take."""
        try:
            there = read_nodes(self.paths.nodes)
        except (OSError, ValueError):
            return 0
        known = {tier: spec.tier(tier).resident_bytes for tier in spec.topology.counts} | {CLIENT: CLIENT_BYTES}
        return sum(known.get(n.tier, n.memory_bytes or 0) for n in there)

    def demand(self, spec: Spec) -> dict[str, Any]:
        needed = scale.needed_cores(spec.scale, spec.shares)
        return {"cores": {"needed": round(needed, 2), "host": self.cores([])}, "memory_bytes": memory_needed(spec)}

    def problems(self, spec: Spec) -> list[str]:
        needed, host = scale.needed_cores(spec.scale, spec.shares), self.cores([])
        if needed <= scale.HOST_LIMIT * host:
            return []
        return [f"nodes, client and machinery may need {needed:.1f} of {host} cores: trials may be invalid (host busy)"]

    def doctor(self, lab: Lab) -> list[Finding]:
        from ntier_harness.targets import local_doctor

        return local_doctor.examine(lab)

    # ---- nodes --------------------------------------------------------------------------------------------------

    def assignment(self, spec: Spec) -> dict[str, str]:
        """There is only this machine."""
        return {}

    def up(self, spec: Spec, log: Path) -> list[Node]:
        """Creates or changes the nodes to what the topology says; does nothing if they are so. Returns the nodes."""
        check_place(self.paths)
        nodes = [granted(node) for node in self._terraform.apply(self.variables(spec), log)]
        durable.write(self.paths.nodes, json.dumps([n.model_dump() for n in nodes], indent=1))
        return nodes

    def variables(self, spec: Spec) -> dict[str, Any]:
        """Input of the Terraform root."""
        return common_variables(spec) | {"state_dir": str(self.paths.state)}

    def down(self, log: Path) -> None:
        """Destroys the nodes and forgets the deployment."""
        self._terraform.destroy(log)
        # what a killed run left behind is in no Terraform state; set-up that never ran left nothing
        if (self.paths.ssh / "id_ed25519").exists():
            self.runner.run(["bash", str(self.root / "node.sh"), "clear"], env=self._terraform.env, timeout=120)
        for file in (self.paths.in_force, self.paths.deploying, self.paths.nodes, self.paths.written):
            durable.remove(file)

    def instances(self) -> dict[str, str]:
        """Instances of our project and their status; empty if Incus does not answer."""
        done = self.runner.run(["incus", "--project", PROJECT, "list", "--format", "json"], timeout=20, check=False)
        return {i["name"]: i["status"] for i in json.loads(done.out)} if done.code == 0 else {}

    def cores(self, nodes: list[Node]) -> int:
        return os.cpu_count() or 1

    def cpu_ticks(self, nodes: Nodes) -> dict[str, list[int]]:
        return {"host": machine.cpu_ticks()}

    def observe(self, directory: Path, remote: str, nodes: Nodes) -> HostSampling:
        groups = [f"{n.name}={self.container(n)}" for n in nodes.all]
        return HostSampling(self.runner, directory, groups, awake_too=self.stays_awake())

    def stays_awake(self) -> bool:
        return awake.wanted()

    # ---- limits -------------------------------------------------------------------------------------------------

    def set_limits(self, nodes: list[Node]) -> None:
        """Puts CPU quota and disk speed of every limited node in force; memory and network are limited all the time."""
        for node in _with_quota(nodes):
            self._favour_collectors(node)
            self._allow(node, *(1000 * ms for ms in quota_ms(node.cpu_cores)))
        self.runner.parallel(lambda n: self._disk(n, str(round(n.disk_bytes_s))), _with_slow_disk(nodes))

    def lift_limits(self, nodes: list[Node]) -> None:
        for node in _with_quota(nodes):
            if self.present(node):
                self._allow(node, None, 100_000)
        self.runner.parallel(lambda n: self._disk(n, NO_DISK_LIMIT), _with_slow_disk(nodes))

    def _favour_collectors(self, node: Node) -> None:
        """A full node serves its collectors first: sysstat of a node of PostgreSQL with 0.2 cores missed 2 to 4 of 40
        readings, which makes a trial invalid. From here, since root of an unprivileged container may not raise a
        priority; what a collector starts inherits it. sysstat's own collector is beside the quota, too."""
        with _there(node):
            processes = processes_of(find_group("memory", self.container(node)))
        for process in processes:
            try:
                if COLLECTOR in Path(f"/proc/{process}/environ").read_bytes():
                    os.setpriority(os.PRIO_PROCESS, process, COLLECTOR_NICE)
                    if Path(f"/proc/{process}/comm").read_text().strip() == Path(SADC).name:
                        self._put_beside_quota(process)
            except OSError:  # it has ended
                continue

    def _put_beside_quota(self, process: int) -> None:
        """A reading of sysstat waits for some 60 answers of lxcfs, and each time a full node has used up its quota
        meanwhile, so that it waited for the next period, too (docs/decisions/collecting.md). What it uses counts as
        none of the node's. Raises OSError."""
        for controller in ("",) if is_v2() else ("cpu", "cpuacct"):
            group = Path(CGROUP, controller, BESIDE_QUOTA)
            group.mkdir(exist_ok=True)
            (group / "cgroup.procs").write_text(str(process))

    def _allow(self, node: Node, quota_us: int | None, period_us: int) -> None:
        """Written to the control group itself, as it is read (`quota`): Incus takes a second for each node, one after
        the other, and a trial needs it twice. None: no limit. Raises WorkError if the node is gone."""
        with _there(node):
            if is_v2():
                text = f"{'max' if quota_us is None else quota_us} {period_us}"
                (Path(find_group("", self.container(node))) / "cpu.max").write_text(text)
            else:
                group = Path(find_group("cpu", self.container(node)))
                (group / "cpu.cfs_period_us").write_text(str(period_us))
                (group / "cpu.cfs_quota_us").write_text(str(-1 if quota_us is None else quota_us))

    def _disk(self, node: Node, bytes_s: str) -> None:
        """Reads and writes each; the root disk comes from the project's profile until it is overridden once."""
        limits = [f"limits.read={bytes_s}", f"limits.write={bytes_s}"]
        done = self._incus("config", "device", "set", node.name, "root", *limits, check=False)
        if done.code:
            self._incus("config", "device", "override", node.name, "root", *limits)

    def _incus(self, *arguments: str, check: bool = True) -> Done:
        return self.runner.run(["incus", "--project", PROJECT, *arguments], timeout=20, check=check)

    def quota(self, node: Node) -> float | None:
        """Cores the kernel allows the node now, read from its control group; None = no limit. Raises OSError."""
        name = self.container(node)
        if is_v2():
            quota, period = (Path(find_group("", name)) / "cpu.max").read_text().split()
        else:
            group = Path(find_group("cpu", name))
            quota, period = ((group / f"cpu.cfs_{n}_us").read_text().strip() for n in ("quota", "period"))
        return None if quota in ("max", "-1") else int(quota) / int(period)

    def container(self, node: Node) -> str:
        """The node's name in the host's control groups: Incus prefixes it with the project."""
        return f"{PROJECT}_{node.name}"

    def present(self, node: Node) -> bool:
        """Whether the node runs, without asking it."""
        try:
            find_group("cpu", self.container(node))
        except OSError:
            return False
        return True

    def newest(self, node: Node, directory: str) -> dict[str, float] | None:
        """Time of the last write to each file in a folder of the node, seen from outside (costs the node nothing; with
        a tenth of a core a shell every few seconds would be a load of its own). None if the node is gone."""
        try:
            process = first_process(find_group("memory", self.container(node)))
            with os.scandir(f"/proc/{process}/root{directory}") as entries:
                return {e.name: e.stat().st_mtime for e in entries if e.is_file()}
        except OSError:
            return None

    def guard(self, address: str, nodes: list[Node]) -> None:
        """Raises WorkError unless `address` is one of our own nodes on the experiment's network."""
        ours = {n.address for n in nodes}
        if address not in ours or ipaddress.ip_address(address) not in NETWORK:
            raise WorkError(
                f"{address} is not one of this experiment's nodes ({', '.join(sorted(ours))} in {NETWORK}); "
                "no load is sent"
            )


@contextmanager
def _there(node: Node) -> Iterator[None]:
    """Its control group is needed. Raises WorkError if the node is gone."""
    try:
        yield
    except FileNotFoundError as error:
        raise WorkError(f"node_gone: {node.name} has no control group any more ({error})") from None


def _with_quota(nodes: list[Node]) -> list[Node]:
    return [n for n in nodes if n.cpu_cores]


def _with_slow_disk(nodes: list[Node]) -> list[Node]:
    return [n for n in nodes if n.disk_bytes_s]


TARGET = Local
