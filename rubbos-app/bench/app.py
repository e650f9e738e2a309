"""How many interactions the application makes per CPU-second, and where its time goes:

    python rubbos-app/bench/app.py RAW_TRIAL [--dbms mysql] [--rounds 12]

Replays the requests of a real trial (its access log: pages, parameters and mix are what users really sent) against the
application in a Tomcat of its own, which uses a database node of its own. CPU time is the JVM's (/proc); the profile
is Java Flight Recorder's. Needs `make setup` and a JDK."""

from __future__ import annotations

import argparse
import collections
import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "setup"))
import testnode  # noqa: E402

URLS = {
    "mysql": "jdbc:mysql://{}:3306/rubbos?sslMode=DISABLED&allowPublicKeyRetrieval=true",
    "postgresql": "jdbc:postgresql://{}:5432/rubbos?sslmode=disable",
}
PORT = 18080  # TestServer's
REQUESTS = 3000  # of one round
USERS = 4  # at the same time; none of them thinks
PARTS = (  # first match names whose code it is; frames from the top of the stack down
    ("own code", "io.ntier."),
    ("database driver", "com.mysql.", "org.postgresql."),
    ("Tomcat", "org.apache."),
)


def requests(trial: Path) -> list[str]:
    """Dynamic pages in the order in which they were asked for."""
    log = next((trial / "nodes/web1/logs").glob("access.log*"))
    text = subprocess.run(["zstd", "-dcf", log], check=True, capture_output=True, text=True).stdout
    return re.findall(r'"GET (/rubbos/servlet/\S+) HTTP', text)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def replay(paths: list[str]) -> None:
    """One after the other. Raises SystemExit with the page if a request fails."""
    connection = http.client.HTTPConnection("127.0.0.1", PORT)
    for path in paths:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status}\n{body.decode()}")


def play(paths: list[str], number: int) -> None:
    """Round `number`: the next REQUESTS of the log, shared out among the users."""
    part = [paths[(number * REQUESTS + k) % len(paths)] for k in range(REQUESTS)]
    with ThreadPoolExecutor(USERS) as users:
        list(users.map(replay, [part[k::USERS] for k in range(USERS)]))


def profile(recording: Path) -> None:
    """Share of the samples by whose code is on top, and the busiest methods of ours and of the driver."""
    command = ["jfr", "print", "--events", "jdk.ExecutionSample", "--stack-depth", "64", recording]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    parts, methods, interactions = collections.Counter(), collections.Counter(), collections.Counter()
    for sample in text.split("jdk.ExecutionSample")[1:]:
        frames = re.findall(r"^ +([\w.$]+)\.([\w$<>]+)\(.*line:", sample, re.MULTILINE)
        names = [f"{owner}.{method}" for owner, method in frames]
        if not any(".coyote." in name for name in names):
            continue  # not a request: compiler, pools, the recorder itself
        whose = next(
            (part for name in names for part, *prefixes in PARTS if any(name.startswith(p) for p in prefixes)), "JDK"
        )
        parts[whose] += 1
        methods[next(name for name in names if not name.startswith(("java.", "jdk.", "sun.")))] += 1
        interactions[next((n.split(".")[-2] for n in names if ".interactions." in n), "outside interactions")] += 1
    for title, counter, most in (("whose code", parts, 9), ("method", methods, 15), ("interaction", interactions, 12)):
        total = sum(counter.values())
        print(f"\n| {title} (JDK's frames count for their caller) | share of {total} samples |\n|---|---|")
        for name, number in counter.most_common(most):
            print(f"| {name} | {100 * number / total:.1f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", type=Path)
    parser.add_argument("--dbms", choices=list(URLS), default="mysql")
    parser.add_argument("--rounds", type=int, default=12, help="half of them are the warm-up")
    parser.add_argument("--statements", choices=["client", "server"], default="client")
    given = parser.parse_args()
    paths = requests(given.trial)
    with tempfile.TemporaryDirectory(prefix="ntier-bench-") as name:
        node = testnode.create(f"{given.dbms}-small", 33, Path(name))
        try:
            measure(given, paths, node, Path(name) / "app.jfr")
        finally:
            node.delete()


def measure(given: argparse.Namespace, paths: list[str], node: testnode.DatabaseNode, recording: Path) -> None:
    pom = ROOT / "rubbos-app/pom.xml"
    classpath = recording.with_name("classpath")
    command = ["mvn", "-B", "-q", "-f", pom, "dependency:build-classpath", f"-Dmdep.outputFile={classpath}"]
    subprocess.run(command, check=True)
    target = ROOT / "rubbos-app/target"
    settings = [f"jdbc_url={URLS[given.dbms].format(node.address)}", f"user={node.user}", f"password={node.password}"]
    settings += ["pool_mode=per_servlet", "pool_size=5", f"statements={given.statements}"]
    java = ["java", "-XX:+UseSerialGC", "-Xmx512m", "-cp"]
    java += [
        f"{target}/test-classes:{target}/classes:{classpath.read_text()}",
        "io.ntier.rubbos.web.TestServer",
        *settings,
    ]
    with (recording.parent / "log").open("w") as log:
        server = subprocess.Popen(java, cwd=ROOT / "rubbos-app", stdout=log, stderr=log)
    try:
        while True:
            try:
                replay(paths[:1])
                break
            except OSError:
                if server.poll() is not None:
                    raise SystemExit(f"the application did not start:\n{Path(log.name).read_text()}") from None
                time.sleep(0.5)
        rounds = []
        for i in range(given.rounds):
            before = cpu_s(server.pid)
            play(paths, i)
            rounds.append(REQUESTS / (cpu_s(server.pid) - before))
            print(f"round {i + 1}: {rounds[-1]:.0f} interactions per CPU-second", flush=True)
        warm = rounds[len(rounds) // 2 :]
        low, middle, high = min(warm), statistics.median(warm), max(warm)
        print(f"warm, {given.dbms}: median {middle:.0f} [{low:.0f}, {high:.0f}] interactions per CPU-second")
        record = ["jcmd", str(server.pid), "JFR.start", "settings=profile", f"filename={recording}", "dumponexit=true"]
        subprocess.run(record, check=True, stdout=subprocess.DEVNULL)
        for i in range(given.rounds, 3 * given.rounds):  # apart: the recorder needs CPU of its own
            play(paths, i)
    finally:
        server.terminate()
        server.wait()
    profile(recording)


if __name__ == "__main__":
    main()
