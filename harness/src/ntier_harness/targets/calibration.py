"""The same short probe of every rented machine, so that unequal twins are named before one of them becomes a
"bottleneck". It takes about 5 s on all machines at once, and then the network one pair after the other."""

from __future__ import annotations

import json
import statistics
from typing import Any

from ntier_analysis.contracts.nodes import Node

from ntier_harness.errors import WorkError
from ntier_harness.ssh import Nodes

MEASURES = {
    "cpu_one_per_s": ("one core", 0.07),
    "cpu_all_per_s": ("all cores", 0.07),
    "memory_bytes_s": ("memory", 0.20),
    "disk_bytes_s": ("disk", 0.35),
    "network_bits_s": ("network", 0.25),
}
"""Measure -> name, and how far below the median of its type a machine may be. Guesses: no rented machine was probed
yet."""
SECONDS = 1.0
NETWORK_BYTES = 200_000_000
PORT = 7099
LOCAL = f"""
import hashlib, json, multiprocessing, os, time
def rounds(_=0):
    block, n, end = b"x" * 65536, 0, time.perf_counter() + {SECONDS}
    while time.perf_counter() < end:
        hashlib.sha256(block).digest(); n += 1
    return n / {SECONDS}
measured = {{"cpu_one_per_s": rounds()}}
with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
    measured["cpu_all_per_s"] = sum(pool.map(rounds, range(os.cpu_count())))
source, n, began = bytearray(64 << 20), 0, time.perf_counter()
while time.perf_counter() - began < {SECONDS}:
    bytes(source); n += 2 * len(source)
measured["memory_bytes_s"] = n / (time.perf_counter() - began)
name, block, n, began = "/var/tmp/ntier-probe", os.urandom(4 << 20), 0, time.perf_counter()
try:
    with open(name, "wb", buffering=0) as file:
        while time.perf_counter() - began < {SECONDS}:
            file.write(block); os.fsync(file.fileno()); n += len(block)
    measured["disk_bytes_s"] = n / (time.perf_counter() - began)
finally:
    os.path.exists(name) and os.unlink(name)
cpu = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
measured["cpu_model"] = cpu[0] if cpu else "unknown"
fields = [int(v) for v in open("/proc/stat").readline().split()[1:9]]
measured["steal_pct"] = round(100 * fields[7] / max(1, sum(fields)), 3)
print(json.dumps(measured))
"""
RECEIVE = f"""
import socket, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", {PORT})); s.listen(1)
s.settimeout(20); print("ready", flush=True); c, _ = s.accept(); c.settimeout(20); n, began = 0, time.perf_counter()
while data := c.recv(1 << 20): n += len(data)
print(8 * n / (time.perf_counter() - began))
"""
SEND = """
import socket
s = socket.create_connection(("{address}", {port}), timeout=10); block = b"x" * (1 << 20)
for _ in range({blocks}): s.sendall(block)
s.close()
"""


def probe(nodes: Nodes, which: list[Node]) -> dict[str, dict[str, Any]]:
    """Node -> what it was found to do. Raises WorkError if a machine cannot be probed."""
    runner = nodes.runner
    outs = runner.parallel(lambda n: nodes.call(n, "python3 -", input=LOCAL, timeout=60).out, which)
    measured = {n.name: _read(n, out) | {"at_s": runner.now()} for n, out in zip(which, outs, strict=True)}
    for node in which:
        other = next((n for n in nodes.all if n.name != node.name), None)
        if other:
            measured[node.name]["network_bits_s"] = _network(nodes, other, node)
    return {name: {k: round(v, 1) if isinstance(v, float) else v for k, v in m.items()} for name, m in measured.items()}


def _read(node: Node, out: str) -> dict[str, Any]:
    try:
        return json.loads(out)
    except ValueError:
        raise WorkError(f"{node.name}: its probe did not print JSON: {out[:200]!r}") from None


def _network(nodes: Nodes, sender: Node, receiver: Node) -> float | None:
    """Bits per second over one connection in the private network; None if it could not be made, as behind the filter
    of an earlier deployment."""
    log = nodes.paths.logs / f"probe.{receiver.name}"
    log.unlink(missing_ok=True)
    listening = nodes.spawn(receiver, f"python3 -c '{RECEIVE}'", log)
    try:
        for _ in range(50):
            if log.exists() and "ready" in log.read_text():
                break
            nodes.runner.sleep(0.1)
        text = SEND.format(address=receiver.address, port=PORT, blocks=NETWORK_BYTES >> 20)
        if nodes.call(sender, "python3 -", input=text, timeout=40, check=False).code:
            return None
        for _ in range(100):
            lines = log.read_text().split()
            if len(lines) > 1 or listening.poll() is not None:
                break
            nodes.runner.sleep(0.1)
        return float(log.read_text().split()[1])
    except (OSError, IndexError, ValueError, WorkError):
        return None
    finally:
        listening.stop()
        log.unlink(missing_ok=True)


def unequal(measured: dict[str, dict[str, Any]], types: dict[str, str]) -> list[str]:
    """A sentence for every machine that does less than the others of its type. `types`: node -> machine type. Two
    machines that differ are both named, since neither is known to be the right one."""
    said = []
    for type_ in dict.fromkeys(types.values()):
        twins = [name for name in measured if types.get(name) == type_]
        for measure, (title, limit) in MEASURES.items():
            values = {name: v for name in twins if isinstance(v := measured[name].get(measure), int | float)}
            if len(values) < 2:
                continue
            middle = max(values.values()) if len(values) == 2 else statistics.median(values.values())
            slow = {name: v / middle for name, v in values.items() if v < (1 - limit) * middle}
            if slow and len(values) == 2:
                worst, best = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
                said.append(f"{worst} and {best} are both {type_} but unequal: {title} of {worst} does "
                            f"{100 * slow[worst]:.0f} % of the other's")  # fmt: skip
            elif slow:
                like = f"is a {type_} like {len(values) - 1} others, but its {title} does"
                said += [f"{name} {like} {100 * share:.0f} % of their median" for name, share in slow.items()]
        models = {measured[name].get("cpu_model") for name in twins} - {None, "unknown"}
        if len(models) > 1:
            said.append(f"machines of type {type_} have different CPUs: {', '.join(sorted(map(str, models)))}")
    return said
