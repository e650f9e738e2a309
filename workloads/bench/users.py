#!/usr/bin/env python3
"""How many users fit in one JVM: the real plan against nginx with static pages of the bulletin board's form.

Usage: users.py [--users 13000] [--phases 60/120/5] [--heap 2736m] [--options "JVM options"] [--keep-alive false] DIR
Needs nginx (NTIER_NGINX), the assembled JMeter (JMETER_HOME, else build/jmeter) and a JDK 25 (JAVA). Prints a JSON
object: the time ledger of the run phase, and what the JVM used in it. The server runs on the same machine; its CPU time
is given apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from ledger import ledger

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
  server {{ listen 127.0.0.1:{port} backlog=16384; root {out}/www; }}
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


def start_nginx(out: Path, port: int, keep_alive: bool) -> int:
    for name, body in pages().items():
        file = out / "www/rubbos" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'<html><body><IMG SRC="/rubbos/RUBBoS_logo.jpg">{body}</body></html>')
    (out / "www/rubbos/RUBBoS_logo.jpg").write_bytes(bytes(9724))
    (out / "tmp").mkdir(exist_ok=True)
    settings = {"out": out, "port": port, "keep_alive": 75 if keep_alive else 0, "files": 19000, "connections": 18000}
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


def measure(jvm: int, server: int, low_s: float, high_s: float) -> dict[str, float]:
    """CPU of the run phase; memory and threads at their largest, looked at each second."""
    time.sleep(max(0.0, low_s - time.time()))
    begin, jvm_cpu, server_cpu, host = time.time(), cpu_s(jvm), cpu_s(server), host_cpu()
    rss_kb = threads = 0
    while time.time() < high_s:
        rss_kb = max(rss_kb, status(jvm, "VmRSS"))
        threads = max(threads, status(jvm, "Threads"))
        time.sleep(min(1.0, max(0.01, high_s - time.time())))
    took, now = time.time() - begin, host_cpu()
    return {
        "jvm_cores": (cpu_s(jvm) - jvm_cpu) / took,
        "server_cores": (cpu_s(server) - server_cpu) / took,
        "jvm_rss_max_gb": rss_kb * 1024 / 1e9,
        "jvm_threads_max": threads,
        "host_idle_share": (now[1] - host[1]) / (now[0] - host[0]),
        "load_average": os.getloadavg()[0],
    }


def run(options: argparse.Namespace) -> dict[str, float]:
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    ramp_up_s, run_s, ramp_down_s = (float(part) for part in options.phases.split("/"))
    start_s = round(time.time()) + options.lead
    (out / "dictionary.txt").write_text("\n".join(f"word{i}" for i in range(4201)))
    settings = {
        "host": "127.0.0.1",
        "port": options.port,
        "users": options.users,
        "start_epoch_ms": 1000 * start_s,
        "ramp_up_s": ramp_up_s,
        "run_s": run_s,
        "ramp_down_s": ramp_down_s,
        "dictionary": out / "dictionary.txt",
        "content_share": 0,
        "keep_alive": options.keep_alive,
        "jvm_heap": options.heap,
        "jvm_options": options.options,
    }
    (out / "ntier.properties").write_text("".join(f"ntier.{name}={value}\n" for name, value in settings.items()))
    nginx = start_nginx(out, options.port, options.keep_alive == "true")
    try:
        home = os.environ.get("JMETER_HOME", str(WORKLOADS.parent / "build/jmeter"))
        environment = os.environ | {"JMETER_HOME": home, "NTIER_WORKLOADS": str(WORKLOADS)}
        subprocess.run([WORKLOADS / "bin/run-jmeter", out], env=environment, check=True)
        low_s = start_s + ramp_up_s
        used = measure(int((out / "jmeter.pid").read_text()), child(nginx), low_s, low_s + run_s)
        while not (out / "jmeter.rc").exists():
            time.sleep(0.5)
    finally:
        os.kill(nginx, 15)
    return asdict(ledger([out])) | used | {"exit_code": int((out / "jmeter.rc").read_text())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=13000)
    parser.add_argument("--phases", default="60/120/5", help="ramp-up/run/ramp-down in seconds")
    parser.add_argument("--heap", default="2736m")
    parser.add_argument("--options", default="", help="further JVM options")
    parser.add_argument("--keep-alive", choices=["true", "false"], default="true")
    parser.add_argument("--lead", type=int, default=20, help="seconds from now to the begin of the ramp-up")
    parser.add_argument("--port", type=int, default=28080)
    parser.add_argument("out", type=Path, metavar="DIR")
    json.dump(run(parser.parse_args()), sys.stdout, indent=2)
    print()
