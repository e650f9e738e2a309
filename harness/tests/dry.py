"""The runner's dry twin: the same calls on a simulated machine with its own clock, for tests of plan, trial and ledger.

The machine (`World`) lives in a folder, so that it outlives a crashed harness as a real one would: nodes keep their
limits, JMeter goes on, collectors too. Programs are simulated by name; an unknown one is an error."""

from __future__ import annotations

import io
import json
import math
import re
import shlex
import tarfile
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from ntier_analysis.contracts.nodes import Node
from ntier_harness.deploy import JIT_CPU
from ntier_harness.errors import WorkError
from ntier_harness.runner import Done, Runner, Stop
from ntier_harness.ssh import Nodes
from ntier_harness.targets.local import Local

from .dry_world import COLLECTORS, EPOCH_S, World

COST_S = 0.01  # simulated time of an ordinary command
COSTS_S = {"terraform": 2.0, "ansible-playbook": 5.0, "ntier-analysis": 0.5}
JMETER_BOOT_S = 3.0
OWN_START = re.compile(r"at=\$\(\(\$\(date \+%s%3N\) \+ (\d+)\)\); \[ \$at -gt (\d+) \]")
PROGRESS = "t_s,users,started,completed,failed,in_flight,response_time_mean_ms,content_checked,content_wrong"
SERVICE_S = 0.05  # demand of one interaction at the simulated bottleneck, s, at scale 0.1


@lru_cache(1024)
def words_of(command: str) -> tuple[str, ...]:
    """As a shell splits them. Most commands of a trial are one that looks once a second."""
    return tuple(shlex.split(command))


class DryTarget(Local):
    """The local target where it looks at the kernel, answered by the world."""

    runner: DryRunner

    def require_privileges(self) -> None:
        """A simulated machine needs none."""

    def quota(self, node: Node) -> float | None:
        if not self.present(node):
            raise FileNotFoundError(node.name)
        text = self.runner.world.node(node.name)["allowance"]
        quota, _, period = text.partition("/")
        return int(quota[:-2]) / int(period[:-2]) if text else None

    def _allow(self, node: Node, quota_us: int | None, period_us: int) -> None:
        """A step of its own in the simulated world, so that tests can break it."""
        text = "" if quota_us is None else f"{quota_us // 1000}ms/{period_us // 1000}ms"
        self._incus("config", "set", node.name, f"limits.cpu.allowance={text}")

    def _favour_collectors(self, node: Node) -> None:
        """A simulated node has no processes."""

    def cpu_ticks(self, nodes: Nodes) -> dict[str, list[int]]:
        """One core, of which a hypervisor takes a twentieth until `robbed_until_s`."""
        now, end = self.runner.now(), self.runner.world.state.get("robbed_until_s", EPOCH_S)
        robbed = min(now, end) - EPOCH_S
        return {"host": [0, 0, 0, round(100 * (now - EPOCH_S - robbed / 20)), 0, 0, 0, round(100 * robbed / 20)]}

    def stays_awake(self) -> bool:
        """A simulated machine has no CPUs that could halt."""
        return False

    def present(self, node: Node) -> bool:
        return bool(self.runner.world.state["nodes"].get(node.name, {}).get("running"))

    def newest(self, node: Node, directory: str) -> dict[str, float] | None:
        state = self.runner.world.node(node.name)
        if state.get("collecting") != directory:
            return {}
        names = {c: f"{c}.csv" for c in COLLECTORS.get(node.tier, [])} | {"sysstat": "sysstat.sa"}
        return {f: state.get("dead", {}).get(c, self.runner.world.now) for c, f in names.items()}


class DrySpawned:
    """A simulated program that runs beside us."""

    def __init__(self, runner: DryRunner, entry: dict[str, Any], lines: Callable[[], list[str]]) -> None:
        self._runner, self._entry, self._lines, self.pid = runner, entry, lines, 4242

    def poll(self) -> int | None:
        return None if self._entry in self._runner.world.state["spawned"] else 0

    def lines(self) -> list[str]:
        return self._lines()

    def stop(self, wait_s: float = 3.0) -> int | None:
        if self._entry in self._runner.world.state["spawned"]:
            self._runner.world.state["spawned"].remove(self._entry)
            self._runner.world.save()
        return 0


class DryStandby:
    """No program need stay up."""

    def start(self) -> None:
        pass


class DryRunner(Runner):
    """`stop_at_s`: simulated time at which the person presses Ctrl-C. `invalid`: reasons that `validate` gives, one per
    call, empty = valid; then every trial whose run phase met no fault is valid."""

    def __init__(
        self, folder: Path, stop: Stop | None = None, *, stop_at_s: float | None = None, invalid: Iterable[str] = ()
    ) -> None:
        super().__init__(stop)
        self.spawned: list[Any] = []
        self.analysis = DryStandby()
        self.world = World(folder)
        self.stop_at_s = stop_at_s
        self.invalid = list(invalid)
        self.sampler: dict[str, Any] | None = None  # the newest one that was started
        self.jit_cpu_s: dict[str, list[float]] = {}  # by tier, before the warm-up and after each round; 0 afterwards
        self.ran: list[str] = []

    def now(self) -> float:
        return self.world.now

    def monotonic(self) -> float:
        return self.world.now - self.world.state.get("set_s", 0.0)

    def sleep(self, seconds: float) -> None:
        self.stop.check()
        if self.stop_at_s is not None and self.world.now <= self.stop_at_s < self.world.now + seconds:
            self.world.advance(self.stop_at_s - self.world.now)
            self.stop.request()
            self.stop_at_s = None
            self.stop.check()
        self.world.advance(max(0.0, seconds))
        self._publish()

    def has(self, program: str) -> bool:
        return True

    def parallel(self, do: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [do(item) for item in items]

    def run(self, argv: list[str], *, input: str | None = None, timeout: float = 60, cwd: Path | None = None,
            env: dict[str, str] | None = None, check: bool = True) -> Done:  # fmt: skip
        name = Path(argv[0]).name
        self.ran.append(f"{name} {argv[-1]}")
        self.stop.check()
        self.world.advance(COSTS_S.get(name, COST_S))
        code, out = getattr(self, "_" + name.replace("-", "_"), self._unknown)(argv, input)
        done = Done(argv, code, out if code == 0 else "", "" if code == 0 else out)
        if check and code:
            raise WorkError(f"{' '.join(argv[:4])}: {done.problem}")
        return done

    def ask(self, argv: list[str], timeout: float = 60) -> Done:
        return self.run(argv, timeout=timeout)

    def fetch(self, argv: list[str], file: Path, timeout: float = 60) -> None:
        self.world.advance(COST_S)
        if Path(argv[0]).name == "sadf":
            file.write_text('{"sysstat": {"hosts": []}}')
            return
        node, words = self._node(argv)
        if not node or not node["running"]:
            raise WorkError(f"ssh {argv[-1]}: no answer")
        file.write_bytes(self._pack(node, words[-1]))

    def lines(self, argv: list[str], on_line: Callable[[str], None], *, log: Path, cwd: Path | None = None,
              env: dict[str, str] | None = None, timeout: float = 1800) -> int:  # fmt: skip
        done = self.run(argv, check=False)
        log.write_text(done.out + done.err)
        for line in (done.out + done.err).splitlines():
            on_line(line)
        return done.code

    def spawn(self, argv: list[str], output: Path | None = None, errors: Path | None = None) -> Any:
        entry = {"argv": [str(a) for a in argv], "t_s": self.world.now}
        self.world.state["spawned"].append(entry)
        self.world.save()
        seen = 0

        def progress() -> list[str]:
            nonlocal seen
            node, _ = self._node(argv)
            beats = self._progress(node["jmeter"]) if node and node.get("jmeter") else []
            lines = [PROGRESS, *beats] if beats else []
            seen, new = len(lines), lines[seen:]
            return new

        self.spawned.append(DrySpawned(self, entry, progress if argv[0] == "ssh" else list))
        if any("sampler.py" in a for a in argv):
            self.sampler = entry
            self._sample(Path(argv[3]), [a.split("=")[0] for a in argv[4:]])
        if Path(argv[0]).name == "sadc":
            Path(argv[-1]).write_bytes(b"sa" * 100)
        return self.spawned[-1]

    def beside(self, do: Callable[[], Any]) -> Callable[[], Any]:
        """As late as may be: when it is waited for, so that all before happens while it is not done."""
        return do

    def exchange(self, argv: list[str], n: int, first: int = 0) -> tuple[list[str], float, float]:
        """Of `ntier-node COMMAND [DIR] ... clock`."""
        commands = re.findall(r"[a-z]+(?: /\S+)?", argv[-1].partition("ntier-node ")[2])
        told = [self.run([*argv[:-1], f"ntier-node {command}"]).out for command in commands if command != "clock"]
        return [text for text in told if text][:first], 0.0001, 0.0004

    def end_orphans(self) -> int:
        before = self.world.state["spawned"]
        self.world.state["spawned"] = []
        self.world.save()
        return len(before)

    # ---- programs -----------------------------------------------------------------------------------------------

    def _unknown(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        raise AssertionError(f"the dry twin does not know {argv}")

    def _git(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        return 0, "0" * 40 if "rev-parse" in argv else ""

    def _terraform(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        nodes = self.world.state["nodes"]
        if "version" in argv:
            return 0, '{"terraform_version": "1.11.4"}'
        if "apply" in argv:
            tiers = json.loads(Path(argv[-2].partition("=")[2]).read_text())["tiers"]
            for i, tier in enumerate(tiers, 1):
                for n in range(1, tier["count"] + 1):
                    made = {"address": f"198.18.{i}.{n}", "tier": tier["name"], "index": n, "allowance": ""}
                    nodes.setdefault(f"{tier['name']}{n}", made)["running"] = True
        if "destroy" in argv:
            nodes.clear()
        if "output" not in argv:
            return 0, ""
        listed = [
            {"name": n, "tier": s["tier"], "index": s["index"], "node_type": "normal", "address": s["address"],
             "role": s["tier"],
             "cpu_cores": None if s["tier"] == "client" else 0.2} for n, s in nodes.items()
        ]  # fmt: skip
        return 0, json.dumps({"nodes": {"value": listed}})

    _tofu = _terraform

    def _ansible_playbook(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        down = [n for n, s in self.world.state["nodes"].items() if not s["running"]]
        if down:
            failed = {
                "_event": "v2_runner_on_unreachable",
                "task": {"name": "Wait"},
                "hosts": {down[0]: {"msg": "unreachable"}},
            }
            return 4, json.dumps(failed)
        return 0, json.dumps({"_event": "v2_playbook_on_task_start", "task": {"name": "Packages"}})

    def _incus(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        if "--version" in argv:
            return 0, "6.0.4"
        if "query" in argv:
            off = self.world.state.get("no_incus")
            return (1, "Error: The incus daemon doesn't appear to be started") if off else (0, "{}")
        if "list" in argv:
            nodes = self.world.state["nodes"]
            return 0, json.dumps([{"name": n, "status": "Running"} for n, s in nodes.items() if s["running"]])
        name = argv[argv.index("set") + 1]
        if not self.world.node(name)["running"] and argv[-1] != "limits.cpu.allowance=":
            return 1, "Error: node does not run"
        self.world.node(name)["allowance"] = argv[-1].partition("=")[2]
        self.world.save()
        return 0, ""

    def _python(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        """Of set-up: builds the program that makes the data."""
        assert argv[1].endswith("setup/build.py"), argv
        return 0, ""

    def _java(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        """Makes the data."""
        facts = {"reference_time_s": 1_800_000_000, "users": 500, "authors": 50}
        (Path(argv[argv.index("--out") + 1]) / "data.json").write_text(json.dumps(facts))
        return 0, ""

    def _sadf(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        return 0, "{}"

    def _ntier_analysis(self, argv: list[str], _input: str | None) -> tuple[int, str]:
        command = argv[1]
        if command == "validate":
            manifest = json.loads((Path(argv[2]) / "manifest.json").read_text())
            return 0, json.dumps(self._validity(manifest))
        if command == "search":
            return 0, json.dumps(self._searched(argv))
        if command == "foresee":
            told = {"source": "simulated", "trials_n": 3, "throughput_per_s": 20, "total": 0.08, "within": 0.03}
            widths = {n: [1 / n, 0.5 / n, 2 / n] for n in range(2, 1 + int(argv[argv.index("--most") + 1]))}
            return 0, json.dumps(told | {"run_s": 20, "plateau_users": [200, 100_000], "half_widths": widths})
        folder = Path(argv[argv.index("--store" if command == "ingest" else "--out") + 1])
        raw = Path(argv[argv.index("--raw") + 1]) if command == "ingest" else None
        if raw:
            write_if_changed(folder / "ingest.json", store_of(raw))
            return 0, ""
        write_if_changed(folder / argv[-1] / "report.json", {"sentence": f"Simulated: what limits {argv[-1]}."})
        return 0, f"Simulated: what limits {argv[-1]}.\nreport: {folder / argv[-1] / 'report.html'}"

    def _searched(self, argv: list[str]) -> dict[str, Any]:
        """Tries the range's lowest load, its middle and its end; goes to another load if one cannot be measured."""
        users = [int(u) for u in argv[argv.index("--users") + 1].split(",")]
        open_ = {argv[i + 1] for i, word in enumerate(argv) if word == "--without"}
        raw = Path(argv[argv.index("--raw") + 1]) / argv[-1]
        assert raw.parent.is_dir(), "the analysis refuses raw results that are not there"
        done = [json.loads(f.read_text()) for f in raw.glob("u*/manifest.json")]
        tried = {m["users"] for m in done if m["trial"] not in open_ and m["rep"] == 1}
        valid = {m["users"] for m in done if (m["validity"] or {}).get("valid")}
        wanted = [users[0], (users[0] + users[-1]) // 2, users[-1], *range(users[0] + 50, users[-1], 50)]
        left = [u for u in wanted if u not in tried]
        if len(valid) >= 3 or not left:
            return {"users": None, "reason": "precise", "why": "three loads are valid"}
        return {"users": left[0], "reason": "plateau", "why": "simulated"}

    def _validity(self, manifest: dict[str, Any]) -> dict[str, Any]:
        run = next(p for p in manifest["phases"] if p["name"] == "run")
        met = [f for f in self.world.state["log"] if run["start_s"] <= f["t_s"] < run["end_s"]]
        reason = met[0]["kind"] if met else (self.invalid.pop(0) if self.invalid else "")
        check = {
            "id": "X1",
            "title": "simulated",
            "required": True,
            "outcome": "fail" if reason else "pass",
            "reason": reason,
        }
        return {"valid": not reason, "checks": [check]}

    # ---- nodes --------------------------------------------------------------------------------------------------

    def _node(self, argv: list[str]) -> tuple[dict[str, Any] | None, list[str]]:
        address = next(a for a in argv if a.startswith("root@"))[5:]
        node = next((s for s in self.world.state["nodes"].values() if s["address"] == address), None)
        return node, list(words_of(argv[-1]))

    def _ssh(self, argv: list[str], input: str | None) -> tuple[int, str]:
        node, words = self._node(argv)
        if node is None or not node["running"]:
            return 255, "no route"
        if "-O" in argv or "-fN" in argv:
            return 0, ""
        command = argv[-1]
        try:
            return self._on_node(node, command, words, input)
        finally:
            self.world.save()

    def _on_node(self, node: dict[str, Any], command: str, words: list[str], input: str | None) -> tuple[int, str]:
        if command.startswith("ntier-node reset"):
            node["collecting"] = None
            node.pop("dead", None)
        elif words[:2] == ["ntier-node", "facts"]:
            service = {
                "unit": f"{node['tier']}.service",
                "main_pid": node.get("main_pid", 100),
                "n_restarts": 0,
                "state": "active",
            }
            return 0, json.dumps(
                {"boot_id": "b", "services": [service], "packages": {"sysstat": "12.7.5"}, "kernel": "6.12.0"}
            )
        elif words[:2] == ["ntier-node", "versions"]:
            return 0, json.dumps({f"{node['tier']}d": node.get("version", "1.0"), "jvm": "unknown"})
        elif words[:2] == ["ntier-node", "start"]:
            node["collecting"] = words[2]
            return 0, json.dumps({"collectors": ["sysstat", *COLLECTORS.get(node["tier"], [])]})
        elif words[:2] == ["ntier-node", "stop"]:
            node["collecting"] = None
        elif words[0].endswith("run-driver"):
            node["jmeter"]["ready_s"] = self.world.now + JMETER_BOOT_S
        elif "driver.json" in command:
            told = json.loads(input or "")
            node["jmeter"] = {**told["phases"], "users": told["workers"], "think_time_s": told["think_time_s"]}
            node["jmeter"] |= {"writes": "read_write" in told["workload"], "seed": told["seed"]}
        elif "/start.new" in command:
            soon = OWN_START.match(command)
            lead_s, earliest_s = (int(n) / 1000 for n in soon.groups()) if soon else (0.0, float(words[1]) / 1000)
            node["jmeter"]["start_s"] = max(self.world.now + lead_s, earliest_s) if soon else earliest_s
            if node["jmeter"]["writes"]:
                for db in self._databases():
                    db["rows"] = db.get("rows", 100) + 1
            return 0, f"{1000 * node['jmeter']['start_s']:.0f}" if soon else ""
        elif command.startswith(("mv ", "tail ")) and "situations" in command:
            node["situations"] = True
            return 0, "2000"
        elif command.startswith("cat ") and "situations" in command:
            node["shared"] = input or node.get("shared", "")
            return 0, f"author,state\n0,Home of {node['address']}\n"
        elif command == JIT_CPU:
            used = self.jit_cpu_s.get(node["tier"], [])
            return 0, str(used.pop(0) if used else 0)
        elif command.startswith("test -s ") and "situations" in command:
            return 0, "yes" if node.get("situations") else ""
        elif words[:2] == ["ntier-restore", "has"]:
            return int(words[2] not in node.get("kept", {})), ""
        elif words[0] in ("ntier-data", "ntier-restore"):
            return 0, self._data(node, words)
        elif "driver.rc" in command:
            return 0, self._exit(node)
        elif words[:2] == ["ntier-node", "end-load"]:
            if node.get("jmeter") and not self._exit(node):
                node["jmeter"] = None
        elif words[:2] == ["ntier-node", "end-all"]:
            node.update(jmeter=None, collecting=None)
        return 0, ""

    def _databases(self) -> list[dict[str, Any]]:
        """Those that show what users wrote: with a management node, the nodes before the data nodes do, too."""
        nodes = self.world.state["nodes"].values()
        tiers = ["db", *(["middleware"] if any(s["tier"] == "management" for s in nodes) else [])]
        return [s for s in nodes if s["tier"] in tiers]

    def _data(self, node: dict[str, Any], words: list[str]) -> str:
        rows, kept = node.setdefault("rows", 100), node.setdefault("kept", {})
        command, name, stamp = [*words[1:], "", "", ""][:3]
        if command == "kept":
            rows = kept[name]["rows"]
        elif command == "keep" and kept.get(name, {}).get("stamp") != stamp:
            kept[name] = {"stamp": stamp, "rows": rows}
            node["main_pid"] = node.get("main_pid", 100) + 1
        elif command == "drop":
            kept.clear()
        elif command == "back" and name in kept:
            node["rows"] = kept[name]["rows"]
            node["main_pid"] = node.get("main_pid", 100) + 1
        return json.dumps({"stories": {"rows": rows}})

    def _exit(self, node: dict[str, Any]) -> str:
        jmeter = node.get("jmeter")
        if not jmeter or "killed_s" in jmeter:
            return "137"
        end = jmeter.get("start_s", math.inf) + sum(jmeter[k] for k in ("ramp_up_s", "run_s", "ramp_down_s"))
        return "0" if self.world.now >= end else ""

    def _progress(self, jmeter: dict[str, float]) -> list[str]:
        """Heartbeats until now: the closed system's law, with a bottleneck of 1 / SERVICE_S."""
        start = jmeter.get("start_s", math.inf)
        if self.world.now < jmeter["ready_s"]:
            return []
        waited = max(0, int(min(self.world.now, start) - jmeter["ready_s"]) + 1)
        idle = [f"{jmeter['ready_s'] + i:.3f},0,0,0,0,0,nan,0,0" for i in range(waited)]
        now = min(self.world.now, jmeter.get("killed_s", math.inf))
        rate = min(jmeter["users"] / (jmeter["think_time_s"] + SERVICE_S), 1 / SERVICE_S)
        return idle + [
            f"{start + i:.3f},{jmeter['users']:.0f},{rate * i:.0f},{rate * i:.0f},0,0,100,0,0"
            for i in range(int(now - start) + 1 if now >= start else 0)
        ]

    def _pack(self, node: dict[str, Any], directory: str) -> bytes:
        files = {"end.json": "{}", "sysstat.sa": "sa" * 100, "logs/service.log": "ready\n"}
        files |= {f"{c}.csv": "t_s,value\n1,2\n" for c in COLLECTORS.get(node["tier"], [])}
        if node.get("jmeter") and node["tier"] == "client":
            lines = self._progress(node["jmeter"])
            files["progress.csv"] = "\n".join([PROGRESS, *lines])
            files["interactions.jtl.csv"] = "timeStamp,elapsed,label\n" + "\n".join(
                f"{line[:10]},100,Browse" for line in lines
            )
            files["thinks.csv"] = "t_start_ms,user,state,drawn_ms,actual_ms\n"
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w|") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(f"./{name}")
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
        return out.getvalue()

    def _sample(self, out: Path, nodes: list[str]) -> None:
        for name in nodes:
            (out / name).mkdir(parents=True, exist_ok=True)
            (out / name / "cgroup_cpu.csv").write_text("t_s,usage_ns\n1,2\n")
        self._publish()

    def _publish(self) -> None:
        """As the sampler: the database works for each interaction of the simulated bottleneck, the others half as
        much."""
        if self.sampler not in self.world.state["spawned"]:
            return
        argv = self.sampler["argv"]
        loads = [n["jmeter"] for n in self.world.state["nodes"].values() if n.get("jmeter")]
        work = min(1.0, sum(SERVICE_S * m["users"] / (m["think_time_s"] + SERVICE_S) for m in loads))
        busy = {name: work if name.startswith("db") else work / 2 for name in (a.split("=")[0] for a in argv[4:])}
        (Path(argv[3]) / "latest.json").write_text(json.dumps({"t_s": self.world.now, "busy": busy}))


def store_of(raw: Path) -> dict[str, Any]:
    """What a store would hold: the newest attempt of each trial that is valid, by its manifest alone."""
    from ntier_harness import ledger

    rows = {}
    for sweep in sorted(p for p in raw.iterdir() if p.is_dir()):
        for trial, attempts in ledger.attempts(sweep).items():
            valid = [a for a in attempts if a.outcome == "valid"]
            if valid:
                rows[f"{sweep.name}/{trial}"] = valid[-1].directory.name
    return rows


def write_if_changed(file: Path, data: dict[str, Any]) -> None:
    text = json.dumps(data, sort_keys=True)
    if not file.exists() or file.read_text() != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
