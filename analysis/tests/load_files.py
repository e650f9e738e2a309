"""The known truth of good_import.py, as k6, Locust, Gatling and Prometheus would have written it down."""

from __future__ import annotations

import struct
from pathlib import Path

import good_import
import numpy as np

K6_HEADER = "metric_name,timestamp,metric_value,error_code,expected_response,name,status"
NODES = ("web1", "app1", "middleware1", "db1")
CORES = 2


def k6_csv(path: Path) -> Path:
    """Three plateaus in one test; between them no users."""
    files = good_import.files()
    lines = [K6_HEADER]
    for trial in files["trials"].itertuples():
        for t in np.arange(trial.run_start_s, trial.run_end_s):
            lines.append(f"vus,{round(1000 * t)},{trial.users},,,,")
        lines.append(f"vus,{round(1000 * trial.run_end_s)},0,,,,")
    for row in files["interactions"].itertuples():
        t = round(1000 * row.t_s)
        lines.append(f"http_req_duration,{t},{row.response_time_ms:.3f},,true,{row.interaction},200")
        lines.append(f"http_req_blocked,{t},0,,true,{row.interaction},200")
    path.write_text("\n".join([*lines, ""]))
    return path


def simulation_log(path: Path) -> Path:
    files = good_import.files()
    lines = [(0, "RUN\tSteps\tsteps\t1790000000000\t \t3.10.5")]
    for trial in files["trials"].itertuples():
        begin, end = round(1000 * trial.run_start_s), round(1000 * trial.run_end_s)
        for kind, t in (("START", begin), ("END", end)):
            lines += [(t, f"USER\tReader\t{kind}\t{t}")] * trial.users
    for row in files["interactions"].itertuples():
        t = round(1000 * row.t_s)
        begin = t - round(row.response_time_ms)
        lines.append((t, f"REQUEST\t\t{row.interaction}\t{begin}\t{t}\tOK\t "))
    path.write_text("\n".join([text for _, text in sorted(lines, key=lambda line: line[0])] + [""]))
    return path


def binary_log(lines: list[str], version: str | None = None) -> bytes:
    """The lines of a `simulation_log` as Gatling writes them from 3.13 on; groups and errors without their sums."""
    numbers: dict[str, int] = {}
    base = int(lines[0].split("\t")[3])

    def string(text: str) -> bytes:
        latin = all(ord(c) < 256 for c in text)
        raw = text.encode("latin-1" if latin else "utf-16-le")
        return struct.pack(">i", len(raw)) + (raw + bytes([not latin]) if raw else b"")

    def cached(text: str) -> bytes:
        if text in numbers:
            return struct.pack(">i", -numbers[text])
        numbers[text] = len(numbers) + 1
        return struct.pack(">i", numbers[text]) + string(text)

    def groups(text: str) -> bytes:
        names = list(filter(None, text.split(",")))
        return struct.pack(">i", len(names)) + b"".join(map(cached, names))

    def times(*texts: str) -> bytes:
        return struct.pack(f">{len(texts)}i", *(int(t) - base for t in texts))

    def record(kind: str, *fields: str) -> bytes:
        if kind == "RUN":
            begun = b"\0" + string(version or fields[4]) + string(fields[0]) + struct.pack(">q", base)
            return begun + string("") + struct.pack(">i", 1) + string("Reader") + struct.pack(">ii", 1, 3) + b"any"
        if kind == "REQUEST":
            done = cached(fields[1]) + times(*fields[2:4]) + bytes([fields[4] == "OK"])
            return b"\1" + groups(fields[0]) + done + cached(fields[5].strip())
        if kind == "USER":
            return b"\2" + struct.pack(">i?", 0, fields[1] == "START") + times(fields[2])
        if kind == "GROUP":
            return b"\3" + groups(fields[0]) + times(*fields[1:3]) + struct.pack(">i?", 0, True)
        return b"\4" + cached(fields[0]) + times(fields[1])

    return b"".join(record(*line.split("\t")) for line in lines)


def locust_history(path: Path) -> Path:
    files = good_import.files()
    head = "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,Total Request Count,Total Failure Count,"
    lines = [head + "Total Median Response Time,Total Average Response Time"]
    done, time_ms = 0, 0.0
    for trial in files["trials"].itertuples():
        mine = files["interactions"].query("trial == @trial.trial")
        for t in np.arange(trial.run_start_s, trial.run_end_s + 1):
            step = mine[(mine["t_s"] > t - 1) & (mine["t_s"] <= t)]
            done, time_ms = done + len(step), time_ms + step["response_time_ms"].sum()
            users = trial.users if t < trial.run_end_s else 0
            lines.append(f"{t:.0f},{users},,Aggregated,0,0,N/A,{done},0,0,{time_ms / max(done, 1)}")
    path.write_text("\n".join([*lines, ""]))
    return path


def openmetrics(path: Path, every_s: int = 1) -> Path:
    """`promtool tsdb dump-openmetrics`: node_exporter's counters of CPU, of nodes with two CPUs."""
    lines = []
    for name, series in cpu_counters(every_s).items():
        node, cpu, mode = name
        labels = f'{{cpu="{cpu}",instance="{node}:9100",job="node",mode="{mode}"}}'
        lines += [f"node_cpu_seconds_total{labels} {v:.6f} {t:.3f}" for t, v in series]
    path.write_text("\n".join([*lines, "# EOF", ""]))
    return path


def cpu_counters(every_s: int = 1) -> dict[tuple[str, str, str], list[tuple[float, float]]]:
    """(node, cpu, mode) -> (time, counter) of all trials; each trial ends where the next one's counters go on."""
    samples = good_import.files()["samples"]
    counters: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for node in NODES:
        busy = idle = 100.0
        for _, part in samples[samples["node"] == node].groupby("trial"):
            for number, row in enumerate(part.itertuples()):
                busy += row.value / 100
                idle += 1 - row.value / 100
                if number % every_s == 0:
                    for cpu in range(CORES):
                        counters.setdefault((node, str(cpu), "user"), []).append((row.t_s, busy))
                        counters.setdefault((node, str(cpu), "idle"), []).append((row.t_s, idle))
    return counters
