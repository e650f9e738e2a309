"""A closed network of known truth that writes raw trials in the real formats: N users with exponential think time go
through one FIFO station per tier, holding a thread of the application from there on and one of its connections from
the middleware on. Used for round trips from parser to verdict."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import once
import zstandard
from ntier_analysis.contracts import FileEntry, Host, Manifest, Node, Phase, State, Validity
from ntier_analysis.ingest import ingest_sweep

T0 = 1_790_000_000.0
TIERS = ("web", "app", "middleware", "db")
PERIOD_S = 0.01
LEAD_S = 2.0  # collectors start before the ramp-up


@dataclass
class Truth:
    """What the network is made of. `demand_s`: CPU seconds per interaction and tier; `cores`: capacity of each node;
    `lock_s`: a serial section that no collector sees; `delay_s`: what an interaction waits for in the database without
    holding up others; `db_pool`, `app_threads`: places, for which whoever finds none waits; `stalls`: tier -> (period,
    share, slowdown) of its station; `service`: "exponential" or "constant"; `hogs`: node -> intervals of full CPU use
    that delay nobody."""

    demand_s: dict[str, float]
    cores: float = 0.1
    lock_s: float = 0.0
    delay_s: float = 0.0
    stalls: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    phase_of_stall: dict[str, float] = field(default_factory=dict)
    service: str = "exponential"
    error_share: float = 0.0
    think_overshoot_ms: float = 0.5
    hogs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    quota_cores: dict[str, float] = field(default_factory=dict)  # what is in force, if not as promised
    used_factor: dict[str, float] = field(default_factory=dict)  # of the CPU time that a quota of cores would give
    steal_pct: float = 0.0
    slowed: float = 1.0
    """CPU time of the same work in the second half of the run, relative to the first."""
    host_busy_pct: float = 30.0
    content_wrong: int = 0
    gc_pauses: list[tuple[float, float]] = field(default_factory=list)  # of the client: (s, ms)
    busiest_thread_pct: float = 20.0  # of the load generator, of one core
    db_pool: int = 24
    app_threads: int = 33
    sample_s: float = 0.1
    sysstat_busy_pct: float | None = None


@dataclass
class Run:
    """What happened: interactions (start, response s), thinks (start, drawn s), pending at the end, busy intervals."""

    interactions: list[tuple[float, float, int]]
    thinks: list[tuple[float, int, float, float]]
    pending: dict[int, float]
    starts: dict[int, float]
    busy: dict[str, list[tuple[float, float]]]
    ends: dict[int, float]
    late: list[tuple[float, float]]  # begin and response of what was answered after its user had left
    entered: dict[str, list[float]]  # arrivals at each tier, inside of its pool
    asked: dict[str, list[float]]  # arrivals at each pool


@dataclass
class Pool:
    """Places that are held to the end of the interaction, and who waits for one: (user, stage, begun)."""

    free: int
    queue: deque[tuple[int, int, float]] = field(default_factory=deque)


STATIONS = (*TIERS, "lock")


def simulate(
    truth: Truth, users: int, phases: tuple[float, float, float], seed: int, leavers: int = 0, leave_s: float = 0.0
) -> Run:
    """Times in s from the start of the ramp-up. The last users, `leavers` more, leave at `leave_s`; what they wait for
    is served all the same."""
    rng = np.random.default_rng(seed)
    end, tie = sum(phases), itertools.count()
    free_at = dict.fromkeys(STATIONS, 0.0)
    pools = {"app": Pool(truth.app_threads), "middleware": Pool(truth.db_pool)}
    ends = {user: leave_s if user >= users else end for user in range(users + leavers)}
    run = Run([], [], {}, {}, {s: [] for s in STATIONS}, ends, [], {s: [] for s in STATIONS}, {s: [] for s in pools})
    events: list[tuple[float, int, int, int, float]] = []  # time, tie, user, stage, begun (-1: the request begins)

    def enter(now: float, user: int, stage: int, begun: float) -> None:
        """At a station, inside of its pool."""
        station = STATIONS[stage]
        run.entered[station].append(now)
        leave = _serve(truth, station, max(now, free_at[station]), rng)
        if leave[1] > leave[0]:
            run.busy[station].append(leave)
        free_at[station] = max(free_at[station], leave[1])
        alone = float(rng.exponential(truth.delay_s)) if station == "lock" and truth.delay_s else 0.0
        heapq.heappush(events, (leave[1] + alone, next(tie), user, stage + 1, begun))

    def think(now: float, user: int, overshoot_s: float) -> None:
        drawn = float(rng.exponential(7.0))
        run.thinks.append((now, user, drawn, min(drawn + overshoot_s, ends[user] - now)))
        heapq.heappush(events, (now + (drawn + overshoot_s), next(tie), user, 0, -1.0))

    spread_s = phases[0] / (4 if leavers else 2)
    for user in range(users + leavers):
        run.starts[user] = spread_s * user / (users + leavers)
        think(run.starts[user], user, 0.0)
    while events and events[0][0] < end:
        now, _, user, stage, begun = heapq.heappop(events)
        begun = now if stage == 0 else begun
        if stage == 0 and now >= ends[user]:
            continue
        if stage == len(STATIONS):
            if now < ends[user]:
                run.interactions.append((begun, now - begun, user))
                think(now, user, truth.think_overshoot_ms / 1000)
            else:
                run.late.append((begun, now - begun))
                run.pending[user] = ends[user] - begun
            for pool in reversed(pools.values()):
                if pool.queue:
                    enter(now, *pool.queue.popleft())
                else:
                    pool.free += 1
            continue
        pool = pools.get(STATIONS[stage])
        if pool is not None:
            run.asked[STATIONS[stage]].append(now)
            if pool.free == 0:
                pool.queue.append((user, stage, begun))
                continue
            pool.free -= 1
        enter(now, user, stage, begun)
    unanswered = [(user, begun) for _, _, user, _, begun in events] + [
        (user, begun) for pool in pools.values() for user, _, begun in pool.queue
    ]
    run.pending |= {user: ends[user] - begun for user, begun in unanswered if begun >= 0}
    return run


def _serve(truth: Truth, station: str, begin: float, rng: np.random.Generator) -> tuple[float, float]:
    mean = truth.lock_s if station == "lock" else truth.demand_s.get(station, 0.0) / truth.cores
    work = mean if truth.service == "constant" or mean == 0 else float(rng.exponential(mean))
    if station not in truth.stalls or work == 0:
        return begin, begin + work
    period, share, slowdown = truth.stalls[station]
    offset = truth.phase_of_stall.get(station, 0.0)
    now = begin
    while work > 1e-9:
        position = (now + offset) % period
        slow = position < share * period
        left = (share * period if slow else period) - position + 1e-9
        speed = 1 / slowdown if slow else 1.0
        spent = min(left, work / speed)
        work -= spent * speed
        now += spent
    return begin, now


# ---- files ---------------------------------------------------------------------------------------------------------


@dataclass
class Spec:
    """One trial to write."""

    users: int
    truth: Truth
    phases: tuple[float, float, float] = (20.0, 60.0, 5.0)
    seed: int = 1
    scale: float = 0.1
    rep: int = 1
    topology: str = "1/1/1/1M"
    mix: str = "browse_only"
    sweep: str = "1-1-1-1M.browse_only.shardingsphere"
    start_s: float = T0
    seal: bool = True
    attempt: int = 1
    above: int | None = None
    validated: bool = False
    """The harness has found it valid, so that ingest does not look again."""
    leave_s: float | None = None
    """When users leave who are there before the run only; None: after half of the ramp-up."""

    @property
    def leavers(self) -> int:
        return 0 if self.above is None else round(self.above * self.scale) - round(self.users * self.scale)


def write_trial(raw: Path, spec: Spec) -> Path:
    """Writes one raw trial (collected; its validity is left to the program under test); returns its folder."""
    before = "" if spec.above is None else f".above{spec.above:05d}"
    trial = f"u{spec.users:05d}{before}.r{spec.rep:02d}"
    name = trial + (f".a{spec.attempt}" if spec.attempt > 1 else "")
    folder = raw / spec.sweep / name
    once.copied("trial", spec, lambda made: _write_trial(made, spec, trial), folder)
    return folder


def _write_trial(folder: Path, spec: Spec, trial: str) -> None:
    leave_s = spec.phases[0] / 2 if spec.leave_s is None else spec.leave_s
    run = simulate(spec.truth, round(spec.users * spec.scale), spec.phases, spec.seed, spec.leavers, leave_s)
    _client(folder / "clients" / "client1", spec, run)
    nodes = nodes_of(spec)
    window = (-LEAD_S, sum(spec.phases) + 1.0)
    for node in nodes:
        _node(folder / "nodes" / node.name, spec, run, node, window)
    _host(folder / "nodes" / "host", spec, window)
    _text(
        folder / "config" / f"{spec.mix}.csv",
        "# a comment, as in workloads\nfrom,to,probability\nStoriesOfTheDay,StoriesOfTheDay,1.0\n",
    )
    manifest = _manifest(spec, nodes, trial)
    if spec.seal:
        manifest.files = [entry(folder, p) for p in sorted(folder.rglob("*")) if p.is_file()]
    manifest.write(folder)


def entry(folder: Path, path: Path) -> FileEntry:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return FileEntry(path=str(path.relative_to(folder)), bytes=path.stat().st_size, sha256=digest)


def nodes_of(spec: Spec) -> list[Node]:
    roles = {"web": "web", "app": "app", "middleware": "shardingsphere", "db": "mysql", "client": "client"}
    return [
        Node(
            name=f"{tier}1",
            tier=tier,
            index=1,
            node_type="client" if tier == "client" else "normal",
            address=f"198.18.0.{10 + i}",
            role=role,
            cpu_cores=None if tier == "client" else spec.truth.cores,
            memory_bytes=2**30,
        )
        for i, (tier, role) in enumerate(roles.items())
    ]


def _manifest(spec: Spec, nodes: list[Node], name: str) -> Manifest:
    up, run, down = spec.phases
    at = spec.start_s
    collectors = {n.name: ["sysstat"] for n in nodes} | {
        "host": ["cgroup_cpu", "cgroup_mem_io", "host_stat", "pressure", "canary", "sysstat"]
    }
    extra = {
        "web1": "apache_status",
        "app1": "tomcat_status",
        "middleware1": "middleware_status",
        "db1": "mysql_status",
    }
    for node, collector in extra.items():
        collectors[node].append(collector)
    return Manifest(
        ntier_version="0",
        sweep=spec.sweep,
        trial=name,
        attempt=spec.attempt,
        topology=spec.topology,
        nodes=nodes,
        mix=spec.mix,
        middleware="shardingsphere",
        data_profile="tiny",
        users=spec.users,
        users_real=round(spec.users * spec.scale),
        above=spec.above,
        above_real=None if spec.above is None else round(spec.above * spec.scale),
        scale=spec.scale,
        rep=spec.rep,
        seed=spec.seed,
        phases=[
            Phase(name="ramp_up", planned_s=up, start_s=at, end_s=at + up),
            Phase(name="run", planned_s=run, start_s=at + up, end_s=at + up + run),
            Phase(name="ramp_down", planned_s=down, start_s=at + up + run, end_s=at + up + run + down),
        ],
        host=Host(cores=2, memory_bytes=24 * 2**30, kernel="6.1", os="Debian", cgroup_version=2),
        state=State.COLLECTED,
        validity=Validity(valid=True, checks=[]) if spec.validated else None,
        clock_offsets_s={
            n.name: {"offset_before": 0.0002, "offset_after": 0.0003, "rtt_before": 0.001, "rtt_after": 0.001}
            for n in nodes
        },
        collectors=collectors,
        quota_readback=[
            {
                "node": n.name,
                "t_s": at,
                "moment": "ramp_up",
                "cpu_cores": spec.truth.quota_cores.get(n.name, n.cpu_cores),
            }
            for n in nodes
        ],
    )


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zst":
        path.write_bytes(zstandard.ZstdCompressor().compress(text.encode()))
    else:
        path.write_text(text)


def _csv(path: Path, header: str, rows) -> None:
    lines = [header, *(",".join(str(v) for v in row) for row in rows)]
    _text(path, "\n".join(lines) + "\n")


JTL = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)


def address(number: int) -> str:
    """Of the page of the n-th interaction; the same one comes again and again, as for stories that many read."""
    return f"/rubbos/servlet/x?a={number % 97}"


def _client(folder: Path, spec: Spec, run: Run) -> None:
    rng = np.random.default_rng(spec.seed + 7)
    t0, end = spec.start_s, sum(spec.phases)
    users = round(spec.users * spec.scale)
    rows = []
    for number, (begun, response, user) in enumerate(run.interactions):
        failed = rng.random() < spec.truth.error_share
        code, ok, why = ("500", "false", "ERROR page") if failed else ("200", "true", "")
        elapsed = 1 if failed else round(1000 * response)
        rows.append(
            (
                round(1000 * (t0 + begun)), elapsed, "StoriesOfTheDay", code, "OK", f"Users 1-{user + 1}", ok, why,
                5000, 200,
                users, users, f"http://198.18.0.10{address(number)}", elapsed, 0, 0,
            )
        )  # fmt: skip
    _csv(folder / "interactions.jtl.csv.zst", JTL, rows)
    thinks = [
        (f"{1000 * (t0 + at):.3f}", user, "StoriesOfTheDay", round(1000 * drawn), f"{1000 * actual:.3f}")
        for at, user, drawn, actual in run.thinks
    ]
    _csv(folder / "thinks.csv.zst", "t_start_ms,user,state,drawn_ms,actual_ms", thinks)
    lives = [
        (
            u,
            f"{1000 * (t0 + run.starts[u]):.3f}",
            f"{1000 * (t0 + run.ends[u]):.3f}",
            f"{1000 * run.pending[u]:.3f}" if u in run.pending else "",
            "StoriesOfTheDay" if u in run.pending else "",
            int(u % 10 == 9),
        )
        for u in run.starts
    ]
    _csv(folder / "users.csv", "user,t_start_ms,t_end_ms,pending_ms,pending_state,author", lives)
    pauses = [(run_s, 0.3) for run_s in range(2, int(end), 5)] + spec.truth.gc_pauses
    log = "".join(f"[{round(1000 * (t0 + at))}ms] GC(1) Pause Final Mark (Young) {ms:.3f}ms\n" for at, ms in pauses)
    _text(folder / "gc.log", "[1ms] Using Shenandoah\n" + log)
    used = [(f"{t0 + s:.3f}", 0.3, spec.truth.busiest_thread_pct, "user-1") for s in range(1, int(end) + 1)]
    _csv(folder / "driver_cpu.csv", "t_s,cores,busiest_pct,thread", used)
    completed = np.sort([b + r for b, r, _ in run.interactions])
    beats = []
    for second in range(1, int(end) + 1):
        n = int(np.searchsorted(completed, second))
        beats.append((f"{t0 + second:.3f}", users, n, 0, "nan", n, spec.truth.content_wrong))
    _csv(
        folder / "progress.csv", "t_s,users,completed,errors,response_time_mean_ms,content_checked,content_wrong", beats
    )


def _cumulative(busy: list[tuple[float, float]], t: np.ndarray) -> np.ndarray:
    """Busy seconds up to each time."""
    if not busy:
        return np.zeros_like(t)
    edges = np.array(sorted(busy)).ravel()
    level = np.concatenate([[0.0], np.cumsum(edges[1::2] - edges[0::2])])
    done = np.searchsorted(edges[1::2], t, side="right")
    inside = np.clip(t - edges[0::2][np.minimum(done, len(edges) // 2 - 1)], 0, None)
    inside[done >= len(edges) // 2] = 0
    return level[done] + inside


def _merged(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[list[float]] = []
    for a, b in sorted(intervals):
        if merged and a <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], b)
        else:
            merged.append([a, b])
    return [(a, b) for a, b in merged]


def _node(folder: Path, spec: Spec, run: Run, node: Node, window: tuple[float, float]) -> None:
    truth = spec.truth
    quota = truth.quota_cores.get(node.name, node.cpu_cores)
    busy = _merged(run.busy.get(node.tier, []) + truth.hogs.get(node.name, []))
    t = np.arange(window[0], window[1], truth.sample_s)
    seconds = _cumulative(busy, t)
    capacity = (quota or 0.3) * truth.used_factor.get(node.name, 1.0)
    used = seconds * capacity + 0.0005 * (t - t[0])
    ticks = np.arange(window[0], window[1] + PERIOD_S, PERIOD_S)
    full = np.diff(_cumulative(busy, ticks)) > 0.98 * PERIOD_S
    any_use = np.diff(_cumulative(busy, ticks)) > 0
    periods = np.concatenate([[0], np.cumsum(any_use)])
    throttled = np.concatenate([[0], np.cumsum(full)])
    index = np.minimum(np.round((t - window[0]) / PERIOD_S).astype(int), len(full))
    if quota is None:
        periods, throttled = periods * 0, throttled * 0
    rows = [
        (
            f"{spec.start_s + t[i]:.6f}", int(0.7e9 * used[i]), int(0.3e9 * used[i]), int(1e9 * used[i]),
            int(1e9 * PERIOD_S * 0.9 * throttled[index[i]]), periods[index[i]], throttled[index[i]],
            -1 if quota is None else round(1e4 * quota), 10000,
        )
        for i in range(len(t))
    ]  # fmt: skip
    header = "t_s,usage_user_ns,usage_system_ns,usage_ns,throttled_ns,nr_periods,nr_throttled,quota_us,period_us"
    _csv(folder / "cgroup_cpu.csv.zst", header, rows)
    slow = np.arange(window[0], window[1], 1.0)
    _csv(
        folder / "cgroup_mem_io.csv.zst",
        "t_s,memory_bytes,memory_cache_bytes,oom_kills,swap_bytes,io_read_bytes,io_write_bytes",
        [(f"{spec.start_s + s:.6f}", 2**29, 2**27, 0, 0, 0, int(1000 * (s + 10))) for s in slow],
    )
    percent = 100 * np.diff(_cumulative(busy, np.append(slow, slow[-1] + 1)))
    shown = percent if truth.sysstat_busy_pct is None else np.full(len(slow), truth.sysstat_busy_pct)
    _text(folder / "sysstat.json.zst", sysstat_json(spec.start_s + slow, shown, node.name))
    service = {"unit": f"{node.role}.service", "main_pid": 7, "active_enter_s": 1.0, "n_restarts": 0, "state": "active"}
    facts = {"boot_id": "b", "boot_s": 1.0, "services": [service]}
    for moment in ("before", "after"):
        _text(folder / f"facts_{moment}.json", json.dumps(facts))
    _text(folder / "end.json", json.dumps({"collectors": {"sysstat": {"state": "stopped", "exit_code": 0}}}))
    _services(folder, spec, run, node, slow)


def _services(folder: Path, spec: Spec, run: Run, node: Node, t: np.ndarray) -> None:
    ended = np.sort([b + r for b, r, *_ in (*run.interactions, *run.late)])
    # A request holds the resources of the tiers that it has reached until its reply is out.
    inside = (
        np.searchsorted(np.sort(run.entered[node.tier]), t) - np.searchsorted(ended, t) if node.tier in TIERS else t
    )
    beyond = np.searchsorted(np.sort(run.entered["middleware"]), t) - np.searchsorted(ended, t)
    waiting = np.searchsorted(np.sort(run.asked["middleware"]), t) - np.searchsorted(
        np.sort(run.entered["middleware"]), t
    )
    connected = np.searchsorted(np.sort(run.asked["app"]), t) - np.searchsorted(ended, t)
    done = np.searchsorted(ended, t)
    stamp = [f"{spec.start_s + s:.3f}" for s in t]
    pool, threads = spec.truth.db_pool, spec.truth.app_threads
    if node.tier == "web":
        rows = [(s, min(i, 300), 300 - min(i, 300), 2 * d) for s, i, d in zip(stamp, inside, done, strict=True)]
        _csv(folder / "apache_status.csv", "t_s,busy_workers,idle_workers,total_accesses", rows)
        lines = [
            f'{spec.start_s + b:.3f} {int(1e6 * r)} 200 5000 app1 "GET {address(number)} HTTP/1.1"'
            for number, (b, r) in enumerate([(b, r) for b, r, _ in run.interactions] + run.late)
        ]
        lines += [
            f'{spec.start_s + b + r:.3f} 100 200 900 - "GET /rubbos/logo.gif HTTP/1.1"' for b, r, _ in run.interactions
        ]
        _text(folder / "logs" / "access.log.zst", "\n".join(lines) + "\n")
    if node.tier == "app":
        header = "t_s,busy_threads,max_threads,connections,pool_active,pool_waiting,pool_size,gc_count,gc_ms,jit_ms"
        _csv(folder / "tomcat_status.csv", header, [
            (s, i, threads, c, b, w, pool, n, n, n)
            for n, (s, i, c, b, w) in enumerate(zip(stamp, inside, connected, beyond, waiting, strict=True))
        ])  # fmt: skip
    if node.tier == "middleware":
        header = "t_s,replica,pending,awaiting,pool_size,executed_total,chosen_total"
        rows = [(s, "db1", i, 0, 90, 3 * d, 3 * d) for s, i, d in zip(stamp, inside, done, strict=True)]
        _csv(folder / "middleware_status.csv", header, rows)
    if node.tier == "db":
        header = "t_s,Questions,Threads_running,Threads_connected,Innodb_row_lock_time,Uptime"
        each = enumerate(zip(stamp, inside, done, strict=True))
        _csv(folder / "mysql_status.csv", header, [(s, 3 * d, i, 30, 0, n) for n, (s, i, d) in each])


def sysstat_json(times: np.ndarray, busy_pct: np.ndarray, name: str) -> str:
    """The part of sadf's JSON that the parser reads, and some that it must not stumble over."""
    records = []
    for t, busy in zip(times, busy_pct, strict=True):
        moment = datetime.fromtimestamp(round(t), UTC)
        records.append(
            {
                "timestamp": {"date": f"{moment:%Y-%m-%d}", "time": f"{moment:%H:%M:%S}", "utc": 1, "interval": 1},
                "cpu-load": [
                    {"cpu": "all", "usr": busy, "nice": 0.0, "sys": 0.0, "iowait": 0.0, "steal": 0.0, "irq": 0.0,
                     "soft": 0.0, "guest": 0.0, "gnice": 0.0, "idle": 100 - busy},
                ],
                "swap-pages": {"pswpin": 0.0, "pswpout": 0.0},
                "memory": {"memused-percent": 40.0, "avail": 12 * 2**20, "swpused": 0},
                "queue": {"runq-sz": 1, "plist-sz": 50, "ldavg-1": 0.5, "blocked": 0},
                "disk": [{"disk-device": "vda", "tps": 3.0, "rkB": 0.0, "wkB": 12.0, "aqu-sz": 0.1, "await": 1.0,
                          "util-percent": 2.0}],
                "network": {
                    "net-dev": [{"iface": "lo", "rxkB": 1.0, "txkB": 1.0},
                                {"iface": "eth0", "rxkB": 10.0, "txkB": 20.0, "ifutil-percent": 0.5}],
                    "net-etcp": {"retrans": 0.0, "atmptf": 0.0},
                },
                "serial": [{"line": 0}],
            }
        )  # fmt: skip
    host = {"nodename": name, "number-of-cpus": 1, "statistics": records, "restarts": []}
    return json.dumps({"sysstat": {"hosts": [host]}})


def _host(folder: Path, spec: Spec, window: tuple[float, float]) -> None:
    t = np.arange(window[0], window[1], 0.1)
    hz = 200 * (t - t[0])  # jiffies of two CPUs
    busy, steal = spec.truth.host_busy_pct / 100, spec.truth.steal_pct / 100
    rows = [
        (
            f"{spec.start_s + s:.6f}",
            round(1000 * h * busy),
            0,
            0,
            round(1000 * h * (1 - busy - steal)),
            0,
            0,
            0,
            round(1000 * h * steal),
        )
        for s, h in zip(t, hz, strict=True)
    ]
    _csv(folder / "host_stat.csv.zst", "t_s,user,nice,system,idle,iowait,irq,softirq,steal", rows)
    slow = np.arange(window[0], window[1], 1.0)
    header = "t_s,cpu_some_avg10,cpu_some_us,io_some_avg10,io_some_us,memory_some_avg10,memory_some_us"
    _csv(
        folder / "pressure.csv.zst",
        header,
        [(f"{spec.start_s + s:.6f}", 0, int(1e4 * (s + 10)), 0, 0, 0, 0) for s in slow],
    )
    work_us = np.where(slow < spec.phases[0] + spec.phases[1] / 2, 300.0, 300.0 * spec.truth.slowed)
    canary = [(f"{spec.start_s + s:.6f}", w, 100.0) for s, w in zip(slow, work_us, strict=True)]
    _csv(folder / "canary.csv.zst", "t_s,loop_us,pages_us", canary)
    _text(
        folder / "sysstat.json.zst",
        sysstat_json(spec.start_s + slow, np.full(len(slow), spec.truth.host_busy_pct), "host"),
    )


def write_sweep(raw: Path, truth: Truth, users: list[int], **options) -> Path:
    """Trials one after the other, 200 s apart; returns the folder of the sweep."""
    for i, n in enumerate(users):
        write_trial(raw, Spec(n, truth, seed=100 + i, start_s=T0 + 200 * i, **options))
    return raw / options.get("sweep", Spec(1, truth).sweep)


def stored_sweep(truth: Truth, users: list[int], **options) -> Path:
    """A folder with the sweep of `write_sweep` in `raw` and in `store`, made once for all tests: to be read only."""

    def make(folder: Path) -> None:
        ingest_sweep(write_sweep(folder / "raw", truth, users, **options), folder / "store")

    return once.shared("sweep", (truth, users, options), make)
