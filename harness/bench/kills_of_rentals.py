"""Kills drawn at random over renting, making images and giving back, against the fake of the provider's API: `ntier
down` must leave nothing afterwards, and no budget is exceeded. The provider and Terraform are the real ones; SSH and
Ansible are stand-ins (tests/rented_world.py), so nothing is deployed or run in between (tests/test_dry_rented.py ends a
whole sweep at every durable step).

Usage: python harness/bench/kills_of_rentals.py [--kills 100] [--chain 4] [--first 0] [--seed 1] [--topo 1/1/1/1P]
                                                [--target hcloud] [--out FILE]

A draw says who is killed (the harness, Terraform, or both with the provider) during which command (`up`, `images` with
a budget, `down`), and after how many requests. `--chain` kills follow each other on what the last one left, then `down`
runs undisturbed and everything is counted; `images --remove` then removes the snapshots. With `--out` each chain is a
line of that file, and chains that are there already are not run again. Prints a line per chain and the sums; exit code
1 if anything was left, a command failed that should not, a machine that was made is in no record of what was rented, or
the images cost more than their budget."""

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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ntier_harness.targets.rental import Ledger
from tests.fake_cloud import FakeCloud
from tests.fake_hcloud import ADDRESS_PRICE, TYPES, FakeHcloud
from tests.fake_openstack import FakeOpenstack
from tests.rented_world import RentedWorld

REQUESTS = {"up": 82, "images": 237, "down": 59}  # of 1/1/1/1P, undisturbed
OPENSTACK_TIMES = 2
"""So many times as many requests does the same take there, about."""
BUDGET = 1.1  # EUR: the machines of 1/1/1/1P twice, but not three times
WAIT_S = 300
CLOUDS: dict[str, type[FakeCloud]] = {"hcloud": FakeHcloud, "openstack": FakeOpenstack}


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
    makes_images = isinstance(world.fake, FakeHcloud)
    commands = ["up", "images", "images", "down"] if makes_images else ["up", "up", "down"]
    during, who = rng.choice(commands), rng.choice(["harness", "terraform", "all"])
    after = rng.randrange(REQUESTS[during] * (1 if makes_images else OPENSTACK_TIMES))
    seen = len(world.fake.requests)
    process = subprocess.Popen(argv(world, during, topo), env=world.environment, cwd=world.root,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    end = time.monotonic() + WAIT_S
    while process.poll() is None and len(world.fake.requests) - seen < after and time.monotonic() < end:
        time.sleep(0.01)
    killed = kill(process.pid, who) if process.poll() is None else "nobody"
    process.wait(WAIT_S)  # if Terraform was killed, the harness ends by itself
    there = sum(world.fake.count().values()) + len(snapshots_of(world.fake))
    return f"{killed} during {during} after {after}, {there} there"


def argv(world: RentedWorld, command: str, topo: str) -> list[str]:
    if command == "down":
        return world.argv("down")
    request = ["--topo", topo, "--data", "tiny", "--machines", str(world.offer)]
    return world.argv(command, *request, *(["--budget", f"{BUDGET}EUR"] if command == "images" else []))


def snapshots_of(fake: FakeCloud) -> list[dict[str, Any]]:
    return list(fake.snapshots.values()) if isinstance(fake, FakeHcloud) else []


def price(server: dict[str, Any]) -> float:
    """0: the offer of openstack has no prices."""
    return TYPES[server["type"]][2] + ADDRESS_PRICE if "type" in server else 0.0


def chain(cloud: type[FakeCloud], rng: random.Random, kills: int, topo: str, folder: Path) -> dict[str, Any]:
    made: list[float] = []
    with cloud() as fake:
        fake.created = lambda server: made.append(price(server))
        world = RentedWorld(folder, fake)
        said = [one_kill(rng, world, topo) for _ in range(kills)]
        done = world.down()
        left, snapshots = fake.count(), snapshots_of(fake)
        undone = [done, world.ntier("images", "--remove")] if cloud is FakeHcloud else [done]
        machines = Ledger(world.place / "rented.json", "EUR").machines()
        noted = {m.work: 0.0 for m in machines}
        for m in machines:
            noted[m.work] += m.cost(time.time())
        return {
            "kills": said,
            "left": left | ({"snapshots": len(kept)} if (kept := snapshots_of(fake)) else {}),
            "code": max(d.returncode for d in undone),
            "error": [(d.stderr.strip().splitlines() or [""])[-1] for d in undone if d.returncode],
            "snapshots": len(snapshots),
            "of_running_machines": sum(not s["was_off"] for s in snapshots),
            "made": len(made),
            "noted": len(machines),
            "cost": round(sum(made), 4),
            "cost_noted": round(sum(noted.values()), 4),
            "cost_of_images": round(sum(cost for work, cost in noted.items() if work.startswith("images")), 4),
            "open": sum(m.until_s is None for m in machines),
        }


def wrong(outcome: dict[str, Any]) -> list[str]:
    found = {
        "left": bool(outcome["left"]),
        "failed": outcome["code"] != 0,
        "forgotten": outcome["noted"] < outcome["made"] or outcome["cost_noted"] < outcome["cost"] - 1e-6,
        "open": bool(outcome["open"]),
        "budget": outcome["cost_of_images"] > BUDGET,
        "running": bool(outcome["of_running_machines"]),
    }
    return [name for name, is_so in found.items() if is_so]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--chain", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="number of the first draw")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--topo", default="1/1/1/1P")
    parser.add_argument("--target", choices=CLOUDS, default="hcloud", help="openstack makes no images")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    known = {}
    if given.out and given.out.exists():
        known = {line["first"]: line for line in map(json.loads, given.out.read_text().splitlines())}
    kinds, bad = collections.Counter(), collections.Counter()
    for number in range(given.first, given.first + given.kills, given.chain):
        outcome = known.get(number)
        if outcome is None:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="nt-") as folder:
                rng = random.Random(f"{given.seed}/{number}")
                cloud = CLOUDS[given.target]
                outcome = {"first": number, **chain(cloud, rng, given.chain, given.topo, Path(folder) / "w")}
            outcome["seconds"] = round(time.monotonic() - began)
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(outcome) + "\n")
        bad.update(wrong(outcome))
        kinds.update(" ".join(k.split()[:3]) for k in outcome["kills"])
        print(f"{number:>4}  {' '.join(wrong(outcome)) or 'ok':<4} {outcome}", flush=True)
    total = sum(kinds.values())
    print(f"{total} draws ({dict(kinds)}); {total - sum(v for k, v in kinds.items() if k.startswith('nobody'))} met a "
          f"command that still ran; wrong: {dict(bad) or 'nothing'}")  # fmt: skip
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
