"""Other people's tools beside a sweep: Prometheus with an exporter that reads the nodes while the sweep runs, then
Locust and k6 against the web tier. What they wrote is imported, and its verdict must be that of the sweep's own
measurement.

    apt-get install --no-install-recommends prometheus prometheus-node-exporter prometheus-process-exporter
    python3 -m venv build/locust && build/locust/bin/pip install locust
    GOSUMDB=off GOBIN=$PWD/build go install go.k6.io/k6@v1.3.0 # minutes of CPU; without it: --tools locust
    .venv/bin/python harness/bench/imported_beside.py [--topo 1/1/1/1M] [--users 500,1500,2500,3500,4500]
        [--phases 20/40/2] [--middleware haproxy] [--nodes web1,db1] [--tools locust,k6] [--cpu host]
        [--work build/imported-beside]

With ShardingSphere the middleware is nearly as full as the database, so that verdicts of the same sweep differ by
chance; with HAProxy one tier limits.

The services that apt installs may stay stopped. Needs root, the images (make setup TOPO=... MIDDLEWARE=...), and the
machine for itself. --cpu says who counts the nodes' CPU time:
  host       process-exporter on the machine that holds the nodes, which tells them apart by their control groups;
             complete; read within the 0.1 to 0.5 s that a scrape takes
  processes  process-exporter in each node: exact, but in a full node most of its answers are late
  node       node_exporter in each node: in a full node up to 1.6 times too much (it is counted by ticks)
With the last two import refuses all trials beyond the knee (docs/how-to/imports.md).

The nodes' packet filter lets only SSH in: Prometheus asks an exporter in a node through a tunnel, and the load
generators reach the web server from the client's node. A mapping file gives each node's cores, since no exporter tells
its quota. Users read pages that the sweep's own users read, drawn as often as these did, and think for 7 s on the
average.

Prints each verdict and maximum beside the sweep's; exit code 1 if a verdict differs."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from ntier_analysis.ingest import attempts
from ntier_analysis.parsers import client
from ntier_analysis.trial import RawTrial
from ntier_harness import settings, sweep
from ntier_harness.commands.begin import make_lab
from ntier_harness.lab import Lab
from ntier_harness.node_state import reset
from ntier_harness.request import make_spec
from ntier_harness.spec import Spec

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Exporter:
    """Whose counters of CPU time."""

    program: str
    port: int  # of 127.0.0.1, on the node or on the host
    options: tuple[str, ...]
    metric: str
    series: dict[str, Any]  # which ones of the metric; mapping file
    on_host: bool = False
    groups: str = ""  # name of a process's group, in process-exporter's template


PROCESS = ("/usr/bin/prometheus-process-exporter", 9256, ("-threads=false", "-gather-smaps=false", "-children=false"),
           "namedprocess_namegroup_cpu_seconds_total", {})  # fmt: skip
COLLECTORS = ("cpu", "stat", "meminfo")  # few: a node may have a tenth of a core, and is asked each second
EXPORTERS = {
    "host": Exporter(*PROCESS, on_host=True, groups="{{index .Cgroups 0}}"),
    "processes": Exporter(*PROCESS, groups="{{.Comm}}"),
    "node": Exporter(
        "/usr/bin/prometheus-node-exporter", 9100,
        ("--collector.disable-defaults", *(f"--collector.{c}" for c in COLLECTORS)),
        "node_cpu_seconds_total", {"without": {"mode": "idle|iowait|steal"}},
    ),
}  # fmt: skip
CONTROL_GROUP = r"/lxc\.payload\.ntier_([a-z]+[0-9]+)(/.*)?"  # of a node's processes on the host -> its name
PROMETHEUS = "http://127.0.0.1:19090"
PORTS, WEB = 19100, 18080  # of this machine: ends of the tunnels
THINK_S, RAMP_S, HOLD_S = 7, 10, 40
PAGES = 2000

K6 = """
import http from 'k6/http';
import { SharedArray } from 'k6/data';
import { sleep } from 'k6';
const pages = new SharedArray('pages', () => JSON.parse(open('./pages.json')));
export const options = { discardResponseBodies: true, scenarios: { users: { executor: 'ramping-vus', startVUs: 0,
  gracefulRampDown: '0s', gracefulStop: '0s', stages: STAGES } } };
export default function () {
  const page = pages[Math.floor(Math.random() * pages.length)];
  http.get('BASE' + page, { tags: { name: page.split('?')[0] }, redirects: 0 });
  sleep(-THINK * Math.log(1 - Math.random()));
}
"""
LOCUST = """
import csv, json, random, time
from pathlib import Path
from locust import HttpUser, LoadTestShape, events, task

PAGES = json.loads(Path(__file__).with_name("pages.json").read_text())
FILE = Path(__file__).with_name("requests.csv").open("w", newline="")
ROWS = csv.writer(FILE)
ROWS.writerow(["name", "start_time", "response_time", "success", "user_count"])
RUNNER = []

@events.init.add_listener
def begin(environment, **_):
    RUNNER.append(environment.runner)

@events.request.add_listener
def done(name, start_time, response_time, exception, **_):
    ROWS.writerow([name, start_time, response_time, exception is None, RUNNER[0].user_count])

@events.quitting.add_listener
def close(**_):
    FILE.close()

class Reader(HttpUser):
    def wait_time(self):
        return random.expovariate(1 / THINK)

    @task
    def read(self):
        page = random.choice(PAGES)
        self.client.get(page, name=page.split("?")[0], allow_redirects=False)

class Stages(LoadTestShape):
    def tick(self):
        at = self.get_run_time()
        for users in USERS:
            if at < RAMP + HOLD:
                return users, max(1, users / RAMP)
            at -= RAMP + HOLD
        return None
"""


def ask(arguments: list[str | Path], **options: Any) -> str:
    print("+", " ".join(map(str, arguments)), flush=True)
    return subprocess.run(arguments, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


@contextmanager
def running(arguments: list[str | Path], log: Path) -> Iterator[subprocess.Popen]:
    with log.open("w") as file:
        process = subprocess.Popen(arguments, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str, within_s: float = 20) -> None:
    last = time.monotonic() + within_s
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > last:
                raise SystemExit(f"{url}: no answer within {within_s:g} s ({error})") from None
            time.sleep(0.5)


def tunnel(lab: Lab, node: Any, here: int, there: str, log: Path) -> Any:
    *ssh, destination, _ = lab.nodes.argv(node, "true", shared=False)
    return running([*ssh, "-N", "-oExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:{there}", destination], log)


@contextmanager
def exporting(lab: Lab, node: Any, exporter: Exporter) -> Iterator[None]:
    """An exporter on a node."""
    unit, remote = "ntier-exporter", "/usr/local/bin/ntier-exporter"
    options = list(exporter.options)
    if exporter.groups:
        lab.nodes.call(node, f"cat > {remote}.yaml", input=grouped(exporter).encode())
        options += ["-config.path", f"{remote}.yaml"]
    lab.nodes.call(node, f"systemctl stop {unit}", check=False)  # of a run that was killed
    lab.nodes.call(
        node, f"cat > {remote} && chmod 755 {remote}", input=Path(exporter.program).read_bytes(), timeout=120
    )
    listens = f"--web.listen-address=127.0.0.1:{exporter.port}"
    lab.nodes.call(node, f"systemd-run --quiet --collect --unit={unit} {remote} {listens} {' '.join(options)}")
    try:
        yield
    finally:
        lab.nodes.call(node, f"systemctl stop {unit}; rm -f {remote} {remote}.yaml", check=False)


def grouped(exporter: Exporter) -> str:
    return yaml.safe_dump({"process_names": [{"name": exporter.groups, "cmdline": [".+"]}]})


def on_nodes(stack: ExitStack, lab: Lab, nodes: list[Any], exporter: Exporter, work: Path) -> dict[str, Any]:
    """Starts the exporter on each node; -> the part of Prometheus' configuration that scrapes it."""
    scraped = []
    for here, node in enumerate(nodes, start=PORTS):
        stack.enter_context(exporting(lab, node, exporter))
        stack.enter_context(tunnel(lab, node, here, f"127.0.0.1:{exporter.port}", work / f"tunnel-{node.name}.log"))
        answers(f"http://127.0.0.1:{here}/metrics")
        scraped.append({"targets": [f"127.0.0.1:{here}"], "labels": {"node": node.name}})
    return {"static_configs": scraped}


def on_host(stack: ExitStack, exporter: Exporter, work: Path) -> dict[str, Any]:
    """The same for one exporter that sees the processes of all nodes."""
    (work / "groups.yaml").write_text(grouped(exporter))
    command = [exporter.program, f"-web.listen-address=127.0.0.1:{PORTS}", *exporter.options]
    stack.enter_context(running([*command, "-config.path", work / "groups.yaml"], work / "exporter.log"))
    answers(f"http://127.0.0.1:{PORTS}/metrics")
    named = {"source_labels": ["groupname"], "regex": CONTROL_GROUP, "target_label": "node"}
    return {"static_configs": [{"targets": [f"127.0.0.1:{PORTS}"]}], "metric_relabel_configs": [named]}


@contextmanager
def watched(lab: Lab, nodes: list[Any], exporter: Exporter, work: Path) -> Iterator[None]:
    """Prometheus scrapes the nodes each second."""
    with ExitStack() as stack:
        job = on_host(stack, exporter, work) if exporter.on_host else on_nodes(stack, lab, nodes, exporter, work)
        job |= {"job_name": "nodes", "scrape_interval": "1s", "scrape_timeout": "1s"}
        (work / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
        data = work / "prometheus"
        shutil.rmtree(data, ignore_errors=True)
        stack.enter_context(running(
            ["prometheus", f"--config.file={work / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
             f"--web.listen-address={urlsplit(PROMETHEUS).netloc}"], work / "prometheus.log"))  # fmt: skip
        answers(f"{PROMETHEUS}/-/ready", 60)
        yield


def mapping(nodes: list[Any], exporter: Exporter, file: Path) -> Path:
    """CPU of each node relative to its quota."""
    series = []
    for node in nodes:
        busy = {"rate": exporter.metric, "where": {"node": node.name}} | exporter.series
        cores = node.cpu_cores or os.cpu_count() or 1
        series.append({"resource": "cpu", "metric": "used_cores", "value": [busy]})
        series.append({"resource": "cpu", "metric": "utilization_pct", "factor": 100 / cores, "value": [busy]})
    told = {"node": "node", "advances": exporter.metric, "series": series}
    file.write_text(yaml.safe_dump({"exporters": {"cpu": told}}))
    return file


def with_prometheus(nodes: list[Any], topology: str, exporter: Exporter, work: Path) -> list[str | Path]:
    named = [f"--node={node.name}={node.name}:{node.tier}" for node in nodes]
    return ["--prometheus", PROMETHEUS, "--mapping", mapping(nodes, exporter, work / "mapping.yaml"), *named,
            "--topology", topology, "--think-time", str(THINK_S), "--store", work / "store"]  # fmt: skip


def valid_trials(raw: Path) -> list[RawTrial]:
    found = [RawTrial(folders[-1]) for folders in attempts(raw).values()]
    return [t for t in found if t.manifest.valid]


def import_jmeter(trials: list[RawTrial], spec: Spec, given: list[str | Path]) -> None:
    """The sweep's own users, by their JTL alone, with the nodes as Prometheus saw them."""
    for trial in trials:
        files = [trial.required(f"clients/{name}/interactions.jtl.csv") for name in trial.clients]
        jtl = [part for file in files for part in ("--jtl", file)]
        print(ask([BIN / "ntier-analysis", "import", *jtl, "--sweep", "jmeter",
                   "--users", str(trial.manifest.users_real), "--rep", str(trial.manifest.rep),
                   "--ramp-up", str(spec.phases.ramp_up_s), "--ramp-down", str(spec.phases.ramp_down_s),
                   *given]))  # fmt: skip


def pages_of(trials: list[RawTrial]) -> list[str]:
    """Pages that the sweep's users read, with success; each as often as they did."""
    read = [trial.of_clients("interactions.jtl.csv", partial(client.interactions, addresses=True)) for trial in trials]
    urls = sorted(url for frame in read for url in frame.loc[frame["ok"], "url"] if url)
    return random.Random(1).sample(urls, min(PAGES, len(urls)))


def web_server(lab: Lab, spec: Spec) -> str:
    entry = spec.system.definition.load.entry
    return f"{lab.nodes.tier(entry.tier)[0].address}:{entry.port}"


def locust(work: Path, program: Path, users: list[int]) -> list[str | Path]:
    text = LOCUST.replace("USERS", repr(users)).replace("RAMP", str(RAMP_S)).replace("HOLD", str(HOLD_S))
    (work / "locustfile.py").write_text(text.replace("THINK", str(THINK_S)))
    command = [program, "-f", work / "locustfile.py", "--headless", "--host", f"http://127.0.0.1:{WEB}"]
    written = ["--csv", work / "locust", "--csv-full-history", "--only-summary"]
    ask([*command, *written, "--exit-code-on-error", "0"], stderr=subprocess.STDOUT)
    return ["--locust", work / "locust_stats_history.csv", "--locust", work / "requests.csv"]


def k6(work: Path, program: Path, users: list[int]) -> list[str | Path]:
    stages = [{"duration": f"{seconds}s", "target": n} for n in users for seconds in (RAMP_S, HOLD_S)]
    text = K6.replace("STAGES", json.dumps(stages)).replace("BASE", f"http://127.0.0.1:{WEB}")
    (work / "k6.js").write_text(text.replace("THINK", str(THINK_S)))
    ask([program, "run", "--quiet", "--no-usage-report", "--out", f"csv={work / 'k6.csv'}", work / "k6.js"],
        env=os.environ | {"K6_CSV_TIME_FORMAT": "unix_milli"}, stderr=subprocess.STDOUT)  # fmt: skip
    return ["--k6", work / "k6.csv"]


def drive(lab: Lab, spec: Spec, tool: str, program: Path, work: Path, given: list[str | Path]) -> None:
    """One load generator over the sweep's loads, under the sweep's limits; imported as the sweep of its name."""
    reset(lab)
    lab.target.set_limits(lab.nodes.all)
    try:
        files = {"locust": locust, "k6": k6}[tool](work, program, [spec.real_users(u) for u in spec.users])
    finally:
        lab.target.lift_limits(lab.nodes.all)
    print(ask([BIN / "ntier-analysis", "import", *files, "--sweep", tool, *given]))


def verdict_of(store: Path, name: str) -> dict[str, Any]:
    (judged,) = json.loads(ask([BIN / "ntier-analysis", "verdict", name, "--store", store, "--json"]))["sweeps"]
    named = sorted({f"{b['tier']} {b['resource']}" for b in judged["bottlenecks"]})
    return {"verdict": judged["verdict"], "bottlenecks": named, "knee_users": judged["knee_users"],
            "max_per_s": judged["max_throughput_per_s"], "interval": judged["max_throughput_interval"]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topo", default="1/1/1/1M")
    parser.add_argument("--users", default="500,1500,2500,3500,4500", help="nominal")
    parser.add_argument("--phases", default="20/40/2")
    parser.add_argument("--middleware", default="haproxy")
    parser.add_argument("--nodes", help="that are imported, as web1,db1; default: all but the clients")
    parser.add_argument("--tools", default="locust,k6")
    parser.add_argument("--cpu", choices=EXPORTERS, default="host", help="who counts the nodes' CPU time")
    parser.add_argument("--locust", type=Path, default=Path("build/locust/bin/locust"))
    parser.add_argument("--k6", type=Path, default=Path("build/k6"))
    parser.add_argument("--work", type=Path, default=Path("build/imported-beside"))
    given = parser.parse_args()
    tools = {t: getattr(given, t).absolute() for t in given.tools.split(",") if t}
    exporter = EXPORTERS[given.cpu]
    for program in (exporter.program, shutil.which("prometheus") or "prometheus", *tools.values()):
        if not Path(program).exists():
            sys.exit(f"{program}: not installed; the head of {__file__} says how")
    work = given.work.absolute()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    name = f"beside{time.strftime('%m%d%H%M')}"  # trials that were run before were not scraped
    wanted = {"topo": given.topo, "users": given.users, "phases": given.phases, "middleware": given.middleware,
              "name": name}  # fmt: skip
    lab = make_lab()
    spec = make_spec(wanted, lab.paths.root, os.cpu_count() or 1)
    with sweep.locked(lab):
        sweep.provision(lab, spec, settings.values(spec))
        sweep.ready(lab, spec, settings.values(spec))
    names = given.nodes.split(",") if given.nodes else [n.name for n in lab.nodes.all if n not in lab.nodes.clients]
    scraped = [n for n in lab.nodes.all if n.name in names]
    with watched(lab, scraped, exporter, work):
        ask([BIN / "ntier", "sweep", *(part for k, v in wanted.items() for part in (f"--{k}", v))])
        trials, own = valid_trials(lab.paths.raw / spec.sweep), lab.paths.results / "store"
        if not trials:
            sys.exit(f"{spec.sweep}: no valid trial")
        options = with_prometheus(scraped, given.topo, exporter, work)
        import_jmeter(trials, spec, options)
        pages = pages_of(trials)
        (work / "pages.json").write_text(json.dumps(pages))
        lab.nodes.connect()
        with sweep.locked(lab), tunnel(lab, lab.nodes.clients[0], WEB, web_server(lab, spec), work / "tunnel-web.log"):
            answers(f"http://127.0.0.1:{WEB}{pages[0]}")
            for tool, program in tools.items():
                drive(lab, spec, tool, program, work, options)
    lab.nodes.disconnect()
    found = {"measured": verdict_of(own, spec.sweep)} | {n: verdict_of(work / "store", n) for n in ("jmeter", *tools)}
    (work / "result.json").write_text(json.dumps(found, indent=1))
    for name, told in found.items():
        print(f"{name:9s}", json.dumps(told))
    what = {name: (t["verdict"], t["bottlenecks"]) for name, t in found.items()}
    sys.exit(any(w != what["measured"] for w in what.values()))


if __name__ == "__main__":
    main()
