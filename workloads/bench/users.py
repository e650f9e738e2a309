#!/usr/bin/env python3
"""How many users fit in one client, or in several: the real plan against nginx with static pages of the board's form.

Usage: users.py [--users 13000] [--clients 1] [--phases 60/120/5] [--options "JVM options"] [--keep-alive false] DIR
Needs nginx (NTIER_NGINX), the assembled JMeter (JMETER_HOME, else build/jmeter) and a JDK 25 (JAVA). Prints a JSON
object: the time ledger of the run phase of all clients together and of each, and what the JVMs used in it. The server
runs on the same machine; its CPU time is given apart.
Several clients: each has a network namespace of its own, with its own address and ports, and shares no more with the
others than CPUs and memory (needs root and iproute2). They are started by the harness' own contract: shares of the
users, one seed, one common moment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from ledger import ledger
from ntier_analysis.contracts.nodes import Node
from ntier_harness import drivers
from ntier_harness.catalog import Phases
from ntier_harness.drivers import Entry, Run, Share
from ntier_harness.drivers.jmeter import JMeter

WORKLOADS = Path(__file__).resolve().parents[1]
SERVLETS = "/rubbos/servlet/edu.rice.rubbos.servlets."
COMMENTS = 35  # of a story: the mean of the data set's 20..50
TEXT = "<p>" + "lorem ipsum " * 42 + "</p>\n"  # 500 characters: the mean of the data set's texts
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

NGINX = """
worker_processes 1;
worker_rlimit_nofile {files};
pid {out}/nginx.pid;
error_log {out}/nginx.err;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  keepalive_timeout {keep_alive};
  keepalive_requests 1000000;
  default_type text/html;
  types {{ image/jpeg jpg; }}
  client_body_temp_path {out}/tmp; proxy_temp_path {out}/tmp; fastcgi_temp_path {out}/tmp;
  uwsgi_temp_path {out}/tmp; scgi_temp_path {out}/tmp;
  server {{ listen {address}:{port} backlog=16384; root {out}/www; }}
}}
"""


def link(servlet: str, query: str) -> str:
    return f'<a href="{SERVLETS}{servlet}?{query}">link</a>\n'


def pages() -> dict[str, str]:
    """File name -> body; sizes as the application's: home 6 kB, categories 10 kB, a story with its comments 33 kB."""
    stories = "".join(link("ViewStory", f"storyId={i}") for i in range(1, 21))
    paging = "".join(link("Search", f"search=word&page={page}&nbOfStories=20") for page in (0, 2))
    comment = "".join(
        link("ViewComment", f"comment_table=comments&storyId=1&commentId={i}&filter=0&display=1") + TEXT
        for i in range(COMMENTS)
    )
    categories = "".join(link("BrowseStoriesByCategory", f"category={i}&categoryName=name") for i in range(85))
    servlets = {
        "StoriesOfTheDay": stories[: len(stories) // 2] + TEXT * 10,
        "BrowseCategories": categories,
        "BrowseStoriesByCategory": stories + paging,
        "OlderStories": stories + paging,
        "ViewStory": TEXT + comment,
        "ViewComment": comment[: len(comment) // 4],
        "Search": stories + comment[:400] + paging,
    }
    return {f"servlet/edu.rice.rubbos.servlets.{name}": body for name, body in servlets.items()} | {"browse.html": TEXT}


def start_nginx(out: Path, address: str, port: int, keep_alive: bool) -> int:
    for name, body in pages().items():
        file = out / "www/rubbos" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'<html><body><IMG SRC="/rubbos/RUBBoS_logo.jpg">{body}</body></html>')
    (out / "www/rubbos/RUBBoS_logo.jpg").write_bytes(bytes(9724))
    (out / "tmp").mkdir(exist_ok=True)
    settings = {
        "out": out,
        "address": address,
        "port": port,
        "keep_alive": 75 if keep_alive else 0,
        "files": 19000,
        "connections": 18000,
    }
    (out / "nginx.conf").write_text(NGINX.format(**settings))
    subprocess.run(
        [os.environ.get("NTIER_NGINX", "nginx"), "-c", out / "nginx.conf", "-e", out / "nginx.err"], check=True
    )
    while not (out / "nginx.pid").exists():
        time.sleep(0.05)
    return int((out / "nginx.pid").read_text())


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def status(pid: int, field: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split(f"\n{field}:")[1].split()[0])


def host_cpu() -> tuple[float, float]:
    """(all, idle) ticks of the machine."""
    ticks = [int(t) for t in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def command(argv: list[str]) -> None:
    subprocess.run(argv, check=True)


BRIDGE, SERVER_ADDRESS = "ntierbench", "198.19.255.1"


@contextlib.contextmanager
def namespaces(clients: int) -> Iterator[tuple[str, list[list[str]]]]:
    """-> the server's address, and for each client the words that run a program in its network. One needs none.
    Of several each is a network namespace with a cable to one bridge; all of it goes again."""
    if clients == 1:
        yield "127.0.0.1", [[]]
        return
    names = [f"{BRIDGE}{i}" for i in range(1, clients + 1)]
    try:
        command(["ip", "link", "add", BRIDGE, "type", "bridge"])
        command(["ip", "addr", "add", f"{SERVER_ADDRESS}/24", "dev", BRIDGE])
        command(["ip", "link", "set", BRIDGE, "up"])
        for i, name in enumerate(names, 2):
            command(["ip", "netns", "add", name])
            command(["ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name])
            command(["ip", "link", "set", name, "master", BRIDGE, "up"])
            inside = ["ip", "-n", name]
            command([*inside, "addr", "add", f"198.19.255.{i}/24", "dev", "eth0"])
            command([*inside, "link", "set", "eth0", "up"])
            command([*inside, "link", "set", "lo", "up"])
        yield SERVER_ADDRESS, [["ip", "netns", "exec", name] for name in names]
    finally:
        for argv in (*(["ip", "netns", "del", name] for name in names), ["ip", "link", "del", BRIDGE]):
            subprocess.run(argv, check=False, capture_output=True)


def measure(jvms: list[int], server: int, low_s: float, high_s: float) -> dict[str, object]:
    """CPU of the run phase; memory and threads at their largest, looked at each second; JVMs in the clients' order."""
    time.sleep(max(0.0, low_s - time.time()))
    begin, jvm_cpu, server_cpu, host = time.time(), [cpu_s(p) for p in jvms], cpu_s(server), host_cpu()
    rss_kb, threads = [0] * len(jvms), [0] * len(jvms)
    while time.time() < high_s:
        rss_kb = [max(old, status(p, "VmRSS")) for p, old in zip(jvms, rss_kb, strict=True)]
        threads = [max(old, status(p, "Threads")) for p, old in zip(jvms, threads, strict=True)]
        time.sleep(min(1.0, max(0.01, high_s - time.time())))
    took, now = time.time() - begin, host_cpu()
    return {
        "jvm_cores": [(cpu_s(p) - old) / took for p, old in zip(jvms, jvm_cpu, strict=True)],
        "server_cores": (cpu_s(server) - server_cpu) / took,
        "jvm_rss_max_gb": [kb * 1024 / 1e9 for kb in rss_kb],
        "jvm_threads_max": threads,
        "host_idle_share": (now[1] - host[1]) / (now[0] - host[0]),
        "load_average": os.getloadavg()[0],
    }


def told(options: argparse.Namespace, out: Path, address: str, share: Share) -> dict[str, object]:
    """`driver.json` of one client."""
    ramp_up_s, run_s, ramp_down_s = (float(part) for part in options.phases.split("/"))
    entry = Entry("web", options.port, "/rubbos")
    phases = Phases("bench", ramp_up_s, run_s, ramp_down_s)
    run = Run(str(out), options.users, phases, 1, entry, think_time_s=7.0, workload="browse_only")
    web = Node(name="web1", tier="web", index=1, node_type="normal", address=address, role="web")
    properties = {
        "ntier.dictionary": str(out.parent / "dictionary.txt"),
        "ntier.mix": str(WORKLOADS / "mixes/browse_only.csv"),
        "ntier.content_share": 0,
        "ntier.keep_alive": options.keep_alive,
    }
    told_driver = drivers.told(run, share, [web]) | JMeter(
        str(WORKLOADS / "rubbos.jmx"), properties=properties
    ).configuration(run, share)
    told_driver["jmeter"] |= {"jvm_options": options.options} | ({"heap": options.heap} if options.heap else {})
    return told_driver


def wait_until(true: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            sys.exit(f"users.py: {what} did not happen within {seconds:.0f} s")
        time.sleep(0.1)


def is_ready(folder: Path) -> bool:
    file = folder / "progress.csv"
    return file.exists() and file.read_text().count("\n") > 1


def run(options: argparse.Namespace) -> dict[str, object]:
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    (out / "dictionary.txt").write_text("\n".join(f"word{i}" for i in range(4201)))
    home = os.environ.get("JMETER_HOME", str(WORKLOADS.parent / "build/jmeter"))
    environment = os.environ | {"JMETER_HOME": home}
    ramp_up_s, run_s, ramp_down_s = (float(part) for part in options.phases.split("/"))
    folders = [out / f"client{i}" for i in range(1, options.clients + 1)]
    with namespaces(options.clients) as (address, prefixes):
        nginx = start_nginx(out, address, options.port, options.keep_alive == "true")
        try:
            for folder, prefix, share in zip(
                folders, prefixes, drivers.split(options.users, len(folders)), strict=True
            ):
                folder.mkdir()
                (folder / "driver.json").write_text(json.dumps(told(options, folder, address, share), indent=1))
                line = [*prefix, str(WORKLOADS / "bin/run-driver"), str(folder), str(WORKLOADS / "bin/run-jmeter")]
                subprocess.run(line, env=environment, check=True)
            wait_until(lambda: all(map(is_ready, folders)), 60, "readiness of all clients")
            start_s = round(time.time()) + 1
            for folder in folders:
                (folder / "start.new").write_text(f"{1000 * start_s}\n")
                (folder / "start.new").rename(folder / "start")
            low_s = start_s + ramp_up_s
            jvms = [int((folder / "jmeter.pid").read_text()) for folder in folders]
            used = measure(jvms, child(nginx), low_s, low_s + run_s)
            ends = lambda: all((folder / "driver.rc").exists() for folder in folders)  # noqa: E731
            wait_until(ends, ramp_down_s + 60, "the clients' end")
        finally:
            os.kill(nginx, 15)
    each = [asdict(ledger([folder])) for folder in folders] if options.clients > 1 else []
    codes = [int((folder / "driver.rc").read_text()) for folder in folders]
    return asdict(ledger(folders)) | used | {"exit_codes": codes, "each": each}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=13000)
    parser.add_argument("--phases", default="60/120/5", help="ramp-up/run/ramp-down in seconds")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--heap", default="", help="of each JVM; default: what its users need")
    parser.add_argument("--options", default="", help="further JVM options")
    parser.add_argument("--keep-alive", choices=["true", "false"], default="true")
    parser.add_argument("--port", type=int, default=28080)
    parser.add_argument("out", type=Path, metavar="DIR")
    json.dump(run(parser.parse_args()), sys.stdout, indent=2)
    print()
