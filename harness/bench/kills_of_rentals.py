"""Kills drawn at random over up and down of rented machines, against the fake of the provider's API: `ntier down` must
leave nothing afterwards. The provider and Terraform are the real ones; SSH is a stand-in (tests/rented_world.py), so
nothing is deployed or run in between.

Usage: python harness/bench/kills_of_rentals.py [--kills 100] [--chain 4] [--seed 1] [--topo 1/1/1/1P]

A draw says who is killed (the harness, Terraform, or both with the provider) during which command, and after how many
requests. `--chain` kills follow each other on what the last one left, then `down` runs undisturbed and everything is
counted. Prints a line per chain and the sums; exit code 1 if anything was left, `down` failed, or a machine that was
made is in no record of what was rented."""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fake_hcloud import FakeHcloud
from tests.rented_world import RentedWorld

UP_REQUESTS, DOWN_REQUESTS = 70, 45  # of 1/1/1/1P, about
WAIT_S = 300


def children(pid: int) -> list[int]:
    """Processes below this one, nearest first."""
    processes, level = [], [pid]
    while level:
        below = []
        for parent in level:
            try:
                text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
            except OSError:
                continue
            below += [int(p) for p in text.split()]
        processes += below
        level = below
    return processes


def named(pids: list[int], part: str) -> list[int]:
    matching = []
    for pid in pids:
        try:
            if part in Path(f"/proc/{pid}/comm").read_text():
                matching.append(pid)
        except OSError:
            continue
    return matching


def kill(pid: int, who: str) -> str:
    """Kills as drawn; returns what was killed."""
    below = children(pid)
    chosen = {"harness": [pid], "terraform": named(below, "terraform")[:1], "all": [pid, *below]}[who]
    for victim in chosen or [pid]:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return who if chosen else "harness"


def one_kill(rng: random.Random, world: RentedWorld, topo: str) -> str:
    """Runs a command and kills as drawn; returns what happened."""
    during, who = rng.choice(["up", "up", "down"]), rng.choice(["harness", "terraform", "all"])
    after = rng.randrange(UP_REQUESTS if during == "up" else DOWN_REQUESTS)
    seen = len(world.fake.requests)
    argv = world.up_argv(topo) if during == "up" else world.argv("down")
    process = subprocess.Popen(argv, env=world.environment, cwd=world.root, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    end = time.monotonic() + WAIT_S
    while process.poll() is None and len(world.fake.requests) - seen < after and time.monotonic() < end:
        time.sleep(0.005)
    killed = kill(process.pid, who) if process.poll() is None else "nobody"
    process.wait(WAIT_S)  # if Terraform was killed, the harness ends by itself
    return f"{killed} during {during} after {after}, {sum(world.fake.count().values())} there"


def chain(rng: random.Random, kills: int, topo: str, folder: Path) -> dict[str, object]:
    with FakeHcloud() as fake:
        world = RentedWorld(folder, fake)
        said = [one_kill(rng, world, topo) for _ in range(kills)]
        done = world.down()
        record = world.state / "hcloud" / "rented.json"
        machines = json.loads(record.read_text())["machines"] if record.exists() else []
        return {
            "kills": said,
            "left": fake.count(),
            "code": done.returncode,
            "error": done.stderr.strip().splitlines()[-1:] if done.returncode else "",
            "made": fake.made,
            "noted": len(machines),
            "open": sum(m["until_s"] is None for m in machines),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--chain", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topo", default="1/1/1/1P")
    given = parser.parse_args()
    bad, kinds, number = 0, collections.Counter(), 0
    while number < given.kills:
        with tempfile.TemporaryDirectory(prefix="nt-") as folder:
            outcome = chain(random.Random(f"{given.seed}/{number}"), given.chain, given.topo, Path(folder) / "w")
        wrong = (
            bool(outcome["left"]) or outcome["code"] != 0 or outcome["noted"] < outcome["made"] or bool(outcome["open"])
        )
        bad += wrong
        kinds.update(" ".join(k.split()[:3]) for k in outcome["kills"])
        number += given.chain
        print(f"{number:>4}  {'BAD ' if wrong else 'ok  '} {outcome}", flush=True)
    print(f"{number} draws ({dict(kinds)}), then down: {bad} chains left something, failed, or forgot a machine")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
