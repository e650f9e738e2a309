"""Samples the nodes' control groups and the host from outside; a stand-alone program, standard library only.

    python3 -I sampler.py OUT NODE[=CGROUP]... [--hz 10] [--awake PROCESS]

writes OUT/<node>/cgroup_cpu.csv, cgroup_mem_io.csv, tcp.csv, OUT/host/host_stat.csv, pressure.csv, canary.csv and,
once a second, OUT/latest.json ({node: busy share of its quota in the last second}) for whoever shows progress.
--awake: awake.py runs as PROCESS, and host_stat.csv tells what its processes use, which is no load.

    python3 -I sampler.py --machine OUT

samples the machine it runs on, for nodes that are machines of their own (target hosts): OUT/procstat.csv, pressure.csv,
tcp.csv, canary.csv.

Why from outside: in a node with a quota, /proc/stat is lxcfs' view and can be wrong by a factor (its idle counter runs
backwards), and 100 Hz ticks are too coarse for a tenth of a core. The control group counts nanoseconds.

Deadlines are absolute, so that a late sample does not shift the following ones; each row carries the time at which its
own counters were read. Files stay open and are read with pread: a sample costs one system call per file. A thread of
its own writes, so that a disk that stands still for a while leaves no gap in the readings.
Units: s, ns, us, bytes; counters are cumulative; -1 = no quota, empty = the kernel does not say."""

from __future__ import annotations

import glob
import json
import mmap
import os
import signal
import sys
import threading
import time
from collections import deque

CGROUP = "/sys/fs/cgroup"
CPU_COLUMNS = "t_s,usage_user_ns,usage_system_ns,usage_ns,throttled_ns,nr_periods,nr_throttled,quota_us,period_us"
MEMORY_COLUMNS = "t_s,memory_bytes,memory_cache_bytes,oom_kills,swap_bytes,io_read_bytes,io_write_bytes"
MACHINE_COLUMNS = "t_s,user,nice,system,idle,iowait,irq,softirq,steal,oom_kills,core_max_pct"
STAT_COLUMNS = "t_s,user,nice,system,idle,iowait,irq,softirq,steal"
AWAKE_COLUMN = "awake_ns"
TCP_COLUMNS = "t_s,out_segs,retrans_segs,attempt_fails,listen_overflows,listen_drops,dsacks"
TCP_FIELDS = (
    "Tcp:OutSegs",
    "Tcp:RetransSegs",
    "Tcp:AttemptFails",
    "TcpExt:ListenOverflows",
    "TcpExt:ListenDrops",
    "TcpExt:TCPDSACKRecv",
)
CANARY_COLUMNS = "t_s,loop_us,pages_us"
CANARY_STEPS, CANARY_BYTES = 5000, 1 << 20  # 0.3 and 0.4 ms, once a second: less than 0.1 % of a core
PRESSURE_COLUMNS = "t_s,cpu_some_avg10,cpu_some_us,io_some_avg10,io_some_us,memory_some_avg10,memory_some_us"
BLANK = ""


def find_group(controller: str, name: str) -> str:
    """Path of a running container's control group, on cgroup v1 below the controller. Raises OSError.

    It is `lxc.payload.<name>`, or `lxc.payload.<name>-<n>` where LXC found a group left behind by a monitor that was
    killed: of several the one with processes is the container's."""
    for base in (f"{CGROUP}/{controller}", CGROUP):
        path = f"{base}/lxc.payload.{name}"
        for group in sorted([path, *glob.glob(f"{glob.escape(path)}-[0-9]*")]):
            if populated(group):
                return group
    raise FileNotFoundError(f"no control group lxc.payload.{name} with processes below {CGROUP} ({controller})")


def populated(group: str) -> bool:
    """Whether a process is in the group or, as systemd sorts them, in one right below it."""
    for file in [f"{group}/cgroup.procs", *glob.glob(f"{glob.escape(group)}/*/cgroup.procs")]:
        try:
            with open(file) as processes:
                if processes.read(1):
                    return True
        except OSError:
            continue
    return False


def processes_of(group: str) -> list[int]:
    """Numbers of the processes of a running container, as this machine counts them."""
    found: list[int] = []
    for path in glob.glob(f"{glob.escape(group)}/**/cgroup.procs", recursive=True):
        try:
            with open(path) as processes:
                found += [int(number) for number in processes.read().split()]
        except OSError:
            continue
    return found


def first_process(group: str) -> str:
    """Number of a running container's first process; "" if none can be seen."""
    found = processes_of(group)
    return str(min(found)) if found else ""


def is_v2() -> bool:
    return os.path.exists(f"{CGROUP}/cgroup.controllers")


class File:
    """A small kernel file that stays open. A file that the kernel does not have reads as ''."""

    def __init__(self, path: str, most_bytes: int = 8192) -> None:
        self.most_bytes = most_bytes
        try:
            self.fd = os.open(path, os.O_RDONLY)
        except OSError:
            self.fd = -1

    def text(self) -> str:
        return os.pread(self.fd, self.most_bytes, 0).decode() if self.fd >= 0 else ""

    def number(self) -> str:
        return self.text().strip()

    def table(self) -> dict[str, str]:
        """Lines `key value` as a dict."""
        return dict(line.split()[:2] for line in self.text().splitlines() if " " in line)


class Tcp:
    """Counters of the network that a process is in: each container has its own."""

    def __init__(self, process: str) -> None:
        self.files = [File(f"/proc/{process}/net/{name}", 32768) for name in ("snmp", "netstat")] if process else []

    def row(self) -> list[str]:
        """Lines come in pairs, `Tcp: names` and `Tcp: values`."""
        values: dict[str, str] = {}
        for file in self.files:
            lines = [line.split() for line in file.text().splitlines()]
            for names, numbers in zip(lines[::2], lines[1::2]):  # noqa: B905 (Python 3.9 has no `strict`)
                pairs = zip(names[1:], numbers[1:])  # noqa: B905
                values.update({names[0] + name: number for name, number in pairs})
        return [values.get(field, BLANK) for field in TCP_FIELDS]


class V1:
    """One node on cgroup v1: counters spread over the controllers' trees."""

    def __init__(self, name: str) -> None:
        cpu, account = find_group("cpu", name), find_group("cpuacct", name)
        self.tcp = Tcp(first_process(cpu))
        memory, blkio = find_group("memory", name), find_group("blkio", name)
        self.usage = [File(f"{account}/cpuacct.{n}") for n in ("usage_user", "usage_sys", "usage")]
        self.stat, self.quota, self.period = (File(f"{cpu}/cpu.{n}") for n in ("stat", "cfs_quota_us", "cfs_period_us"))
        self.memory, self.memory_stat, self.oom = (
            File(f"{memory}/memory.{n}") for n in ("usage_in_bytes", "stat", "oom_control")
        )
        self.io = File(f"{blkio}/blkio.throttle.io_service_bytes_recursive")

    def cpu_row(self) -> list[str]:
        user, system, usage = (f.number() for f in self.usage)
        stat = self.stat.table()
        counts = [stat.get(k, BLANK) for k in ("throttled_time", "nr_periods", "nr_throttled")]
        return [user, system, usage, *counts, self.quota.number(), self.period.number()]

    def memory_row(self) -> list[str]:
        stat, read, write = self.memory_stat.table(), 0, 0
        for line in self.io.text().splitlines():
            parts = line.split()
            if len(parts) == 3:
                read += int(parts[2]) if parts[1] == "Read" else 0
                write += int(parts[2]) if parts[1] == "Write" else 0
        return [
            self.memory.number(), stat.get("total_cache", BLANK), self.oom.table().get("oom_kill", BLANK),
            stat.get("total_swap", BLANK), str(read), str(write),
        ]  # fmt: skip


class V2:
    """One node on cgroup v2: one folder."""

    def __init__(self, name: str) -> None:
        group = find_group("", name)
        self.tcp = Tcp(first_process(group))
        self.stat, self.max = File(f"{group}/cpu.stat"), File(f"{group}/cpu.max")
        self.memory, self.memory_stat, self.events, self.swap = (
            File(f"{group}/memory.{n}") for n in ("current", "stat", "events", "swap.current")
        )
        self.io = File(f"{group}/io.stat")

    def cpu_row(self) -> list[str]:
        stat = self.stat.table()
        ns = [
            f"{v}000" if (v := stat.get(k, BLANK)) else BLANK
            for k in ("user_usec", "system_usec", "usage_usec", "throttled_usec")
        ]
        quota, period = [*self.max.text().split(), "max", "100000"][:2]
        return [
            *ns,
            stat.get("nr_periods", BLANK),
            stat.get("nr_throttled", BLANK),
            "-1" if quota == "max" else quota,
            period,
        ]

    def memory_row(self) -> list[str]:
        # The pool is a file: each byte is counted at its loop device, and again at the disk beneath. The sum would be
        # twice the truth (seen on Debian 13), so the device with most of it counts.
        io_stat = self.io.text()
        read, written = (max(counted(io_stat, key), default=0) for key in ("rbytes", "wbytes"))
        cache, oom = self.memory_stat.table().get("file", BLANK), self.events.table().get("oom_kill", BLANK)
        return [self.memory.number(), cache, oom, self.swap.number(), str(read), str(written)]


def counted(io_stat: str, key: str) -> list[int]:
    """A counter of `io.stat`, of each device that has it."""
    return [int(value) for name, _, value in (part.partition("=") for part in io_stat.split()) if name == key]


class Host:
    """The machine beneath the nodes."""

    def __init__(self) -> None:
        self.stat = File("/proc/stat", 65536)  # a line per core
        self.pressure = [File(f"/proc/pressure/{n}") for n in ("cpu", "io", "memory")]

    def stat_row(self) -> list[str]:
        return self.stat.text().split("\n", 1)[0].split()[1:9]

    def cores(self) -> tuple[list[str], dict[str, tuple[int, int]]]:
        """As `stat_row`, and per core the ticks that it was busy, and all of its ticks."""
        lines = [line.split()[:9] for line in self.stat.text().splitlines() if line.startswith("cpu")]
        ticks = {name: [int(v) for v in values] for name, *values in lines[1:]}
        return lines[0][1:], {name: (sum(v) - v[3] - v[4] - v[7], sum(v)) for name, v in ticks.items()}

    def pressure_row(self) -> list[str]:
        row = []
        for file in self.pressure:
            some = dict(p.split("=") for p in file.text().split("\n", 1)[0].split()[1:])
            row += [some.get("avg10", BLANK), some.get("total", BLANK)]
        return row


class Awake:
    """What keeps the CPUs awake (awake.py), by its process number: the CPU time of the processes that it has made."""

    def __init__(self, process: int) -> None:
        self.children = File(f"/proc/{process}/task/{process}/children", 65536)
        self.used: dict[str, File] = {}
        self.ns: dict[str, int] = {}

    def row(self) -> list[str]:
        """Nanoseconds since they began; a process that has ended keeps what it had used."""
        for child in self.children.text().split():
            if child not in self.used:
                self.used[child] = File(f"/proc/{child}/schedstat")
        for child, file in self.used.items():
            try:
                self.ns[child] = int(file.text().split()[0])
            except (OSError, IndexError):  # it has ended
                continue
        return [str(sum(self.ns.values()))]


def canary_row() -> list[str]:
    """CPU time (us) that the same work takes each time: a loop, and touching memory that the kernel must give first. On
    a virtual machine the second one tells what other guests and the hypervisor's page tables cost."""
    began = time.thread_time_ns()
    total = 0
    for i in range(CANARY_STEPS):
        total += i * i % 7
    middle = time.thread_time_ns()
    with mmap.mmap(-1, CANARY_BYTES) as memory:  # an allocator would hand out what it has kept: no page would be new
        for at in range(0, CANARY_BYTES, mmap.PAGESIZE):
            memory[at] = 1
    end = time.thread_time_ns()
    return [f"{(middle - began) / 1000:.1f}", f"{(end - middle) / 1000:.1f}"]


def busiest(before: dict[str, tuple[int, int]], now: dict[str, tuple[int, int]]) -> str:
    """Percent of its time that the busiest core was busy between two readings."""
    spans = [(busy - before[name][0], total - before[name][1]) for name, (busy, total) in now.items() if name in before]
    shares = [100 * busy / total for busy, total in spans if total > 0]
    return f"{max(shares):.1f}" if shares else BLANK


class Output:
    """A file of rows: noted by one thread (`row`), written by another (`write`)."""

    def __init__(self, directory: str, name: str, header: str) -> None:
        os.makedirs(directory, exist_ok=True)
        self.file = open(os.path.join(directory, name), "w", buffering=1 << 16)  # noqa: SIM115 (open as long as we live)
        self.rows = deque([header])

    def row(self, t_s: float, values: list[str]) -> None:
        self.rows.append(f"{t_s:.6f},{','.join(values)}")

    def write(self) -> None:
        while self.rows:
            self.file.write(self.rows.popleft() + "\n")
        self.file.flush()


class Writer(threading.Thread):
    """Writes what was noted whenever it is told to, and at the end. `error`: why it could not."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.outputs: list[Output] = []
        self.latest: tuple[str, str] | None = None
        """A file, and what shall be in it."""
        self.error: OSError | None = None
        self.due, self.last = threading.Event(), False

    def run(self) -> None:
        while not self.last and self.error is None:
            self.due.wait()
            self.due.clear()
            try:
                self.write()
            except OSError as error:
                self.error = error

    def write(self) -> None:
        for output in self.outputs:
            output.write()
        if self.latest:
            path, text = self.latest
            temporary = f"{os.path.dirname(path)}/.{os.path.basename(path)}.tmp"
            with open(temporary, "w") as file:
                file.write(text)
            os.replace(temporary, path)

    def end(self) -> None:
        """Raises OSError if not all was written."""
        self.last = True
        self.due.set()
        self.join()
        if self.error:
            raise self.error
        for output in self.outputs:
            output.write()
            output.file.close()


class Clocked:
    """Calls `fast` at `hz` and `slow` once a second until it is told to end."""

    def __init__(self, hz: float) -> None:
        self.hz = hz
        self.running = True
        self.writer = Writer()

    def output(self, directory: str, name: str, header: str) -> Output:
        self.writer.outputs.append(Output(directory, name, header))
        return self.writer.outputs[-1]

    def fast(self) -> None:
        raise NotImplementedError

    def slow(self) -> None:
        """Everything so far goes to the files."""
        self.writer.due.set()

    def run(self) -> None:
        """Raises OSError if the files cannot be written."""
        self.writer.start()
        parent, ticks, start = os.getppid(), 0, time.monotonic()
        per_second, second = max(1, round(self.hz)), -1
        try:
            # without its harness a sampler is an orphan: it ends
            while self.running and self.writer.error is None and os.getppid() == parent:
                self.fast()
                if ticks // per_second != second:  # also where a stall took the tick that begins a second
                    second = ticks // per_second
                    self.slow()
                ticks += 1
                wait = start + ticks / self.hz - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
                else:  # stalled: the missed deadlines stay missing, so that the gap shows
                    ticks += int(-wait * self.hz)
        finally:
            self.writer.end()

    def end(self, _number: int, _frame: object) -> None:
        self.running = False


class Machine(Clocked):
    """The machine we run on, seen by itself."""

    def __init__(self, out: str, hz: float) -> None:
        super().__init__(hz)
        self.host, self.vmstat = Host(), File("/proc/vmstat", 32768)
        self.oom_kills = self.vmstat.table().get("oom_kill", BLANK)
        self.stat = self.output(out, "procstat.csv", MACHINE_COLUMNS)
        self.pressure = self.output(out, "pressure.csv", PRESSURE_COLUMNS)
        self.network, self.tcp = Tcp("self"), self.output(out, "tcp.csv", TCP_COLUMNS)
        self.canary = self.output(out, "canary.csv", CANARY_COLUMNS)
        self.before: dict[str, tuple[int, int]] = {}

    def fast(self) -> None:
        row, cores = self.host.cores()
        self.stat.row(time.time(), [*row, self.oom_kills, busiest(self.before, cores)])
        self.before = cores

    def slow(self) -> None:
        self.oom_kills = self.vmstat.table().get("oom_kill", BLANK)
        self.pressure.row(time.time(), self.host.pressure_row())
        self.tcp.row(time.time(), self.network.row())
        self.canary.row(time.time(), canary_row())
        super().slow()


class Sampler(Clocked):
    def __init__(self, out: str, groups: dict[str, str], hz: float, awake: int | None = None) -> None:
        super().__init__(hz)
        reader = V2 if is_v2() else V1
        self.out, self.nodes = out, {node: reader(group) for node, group in groups.items()}
        self.host, self.awake = Host(), Awake(awake) if awake else None
        self.cpu = {n: self.output(f"{out}/{n}", "cgroup_cpu.csv", CPU_COLUMNS) for n in groups}
        self.memory = {n: self.output(f"{out}/{n}", "cgroup_mem_io.csv", MEMORY_COLUMNS) for n in groups}
        self.tcp = {n: self.output(f"{out}/{n}", "tcp.csv", TCP_COLUMNS) for n in groups}
        columns = f"{STAT_COLUMNS},{AWAKE_COLUMN}" if awake else STAT_COLUMNS
        self.stat = self.output(f"{out}/host", "host_stat.csv", columns)
        self.pressure = self.output(f"{out}/host", "pressure.csv", PRESSURE_COLUMNS)
        self.canary = self.output(f"{out}/host", "canary.csv", CANARY_COLUMNS)
        self.before: dict[str, tuple[float, int]] = {}

    def fast(self) -> None:
        """10 Hz: CPU of every node, then of the host."""
        for node, group in self.nodes.items():
            try:
                row = group.cpu_row()
            except OSError:  # the node is gone: its file ends here, and the check of gaps will say so
                continue
            self.cpu[node].row(time.time(), row)
        self.stat.row(time.time(), [*self.host.stat_row(), *(self.awake.row() if self.awake else [])])

    def slow(self) -> None:
        """1 Hz: memory, I/O, pressure, the canary, what progress shows."""
        for node, group in self.nodes.items():
            try:
                self.memory[node].row(time.time(), group.memory_row())
                self.tcp[node].row(time.time(), group.tcp.row())
            except OSError:
                continue
        self.pressure.row(time.time(), self.host.pressure_row())
        self.canary.row(time.time(), canary_row())
        self.publish()
        super().slow()

    def publish(self) -> None:
        busy: dict[str, float] = {}
        for node, group in self.nodes.items():
            try:
                row, t_s = group.cpu_row(), time.time()
            except OSError:
                continue
            used, quota, period = int(row[2] or 0), int(row[6]), int(row[7])
            if node in self.before and quota > 0:
                t_before, used_before = self.before[node]
                busy[node] = round((used - used_before) / 1e9 / (t_s - t_before) / (quota / period), 4)
            self.before[node] = (t_s, used)
        self.writer.latest = f"{self.out}/latest.json", json.dumps({"t_s": time.time(), "busy": busy})


def main(arguments: list[str]) -> int:
    options = {"--hz": "10", "--awake": ""}
    for name in options:
        if name in arguments:
            i = arguments.index(name)
            options[name] = arguments[i + 1]
            del arguments[i : i + 2]
    hz, awake = float(options["--hz"]), int(options["--awake"]) if options["--awake"] else None
    if len(arguments) < 1 or arguments == ["--machine"]:
        print(
            "usage: sampler.py OUT NODE[=CONTAINER]... [--hz 10] [--awake PROCESS] | --machine OUT [--hz 10]",
            file=sys.stderr,
        )
        return 2
    groups = {n: c or n for n, _, c in (a.partition("=") for a in arguments[1:])}
    try:
        own = arguments[0] == "--machine"
        sampler = Machine(arguments[1], hz) if own else Sampler(arguments[0], groups, hz, awake)
    except OSError as error:
        print(f"sampler: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, sampler.end)
    signal.signal(signal.SIGINT, sampler.end)
    try:
        sampler.run()
    except OSError as error:  # a full disk
        print(f"sampler: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
