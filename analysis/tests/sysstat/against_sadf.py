"""Every value that sadf prints of a file, and the reader's own at the same precision, side by side."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np
from ntier_analysis.sysstat import SaFile

GROUPS = ("network", "power-management", "psi", "io-reads", "io-writes", "io-discard")
"""JSON objects that only hold others."""
ITEM = {
    "cpu-load": "cpu", "softnet": "cpu", "serial": "line", "disk": "disk-device", "net-dev": "iface",
    "net-edev": "iface", "fchosts": "fchost", "cpu-frequency": "number", "cpu-weighted-frequency": "number",
    "filesystems": "filesystem", "interrupts": "intr", "fan-speed": "number", "temperature": "number",
    "voltage-input": "number", "battery": "number",
}  # fmt: skip
HEXADECIMAL = ("idvendor", "idprod")
OTHER_NAME = {"retrseg": "retrans"}
"""12.7.8 renamed it."""
NOT_COMPARED = {
    "vmeff-percent",  # until 12.7: pages stolen in percent of those scanned
    "svctm",
}
WRAPPED = 2**31
"""sadf's value of a counter that ran backwards: a multiple of 2^32 or 2^64 per second. The reader has NaN there."""

Printed = dict[tuple[int, str, str, str], str]


def sadf(path: Path, program: str = "sadf") -> tuple[list[dict], str]:
    """(records, messages) of `sadf -j FILE -- -A`."""
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C", "S_TIME_FORMAT": "ISO"}
    done = subprocess.run(
        [program, "-j", path, "--", "-A"], capture_output=True, env=environment, timeout=60, check=False
    )
    if done.returncode or not done.stdout.strip():
        return [], done.stderr.decode("utf-8", "replace") or "no output"
    document = json.loads(done.stdout.decode("utf-8", "replace"), parse_float=str, parse_int=str, strict=False)
    return document["sysstat"]["hosts"][0]["statistics"], done.stderr.decode("utf-8", "replace")


def printed(records: list[dict]) -> Printed:
    """{(interval, activity, item, column): text}; devices by their place, since their names are this machine's."""
    values: Printed = {}
    for number, record in enumerate(records):
        for name, content in _leaves(record):
            if name == "timestamp":
                continue
            single = isinstance(content, dict)
            for place, entry in enumerate([content] if single else content):
                item = "" if single else str(entry.get(ITEM.get(name, ""), place + 1))
                if name in ("disk", "filesystems"):
                    item = str(place)
                for column, text in _flat(entry):
                    if name == "interrupts" and column not in ("intr", "value"):
                        key = item if column == "all" else f"{item}:{column}"
                        values[number, name, key, "value"] = text
                    elif column != ITEM.get(name) and column not in (*NOT_COMPARED, *HEXADECIMAL) and _is_number(text):
                        values[number, name, item, OTHER_NAME.get(column, column)] = text
                    elif column in HEXADECIMAL:
                        values[number, name, item, column] = str(int(text, 16))
    return values


def _leaves(record: dict):
    for name, content in record.items():
        if name in GROUPS:
            yield from _leaves(content)
        else:
            yield name, content


def _flat(entry: dict):
    for name, content in entry.items():
        if isinstance(content, dict):
            yield from _flat(content)
        else:
            yield name, content


def _is_number(text: object) -> bool:
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def ours(file: SaFile) -> dict[tuple[int, str, str, str], float]:
    """The same keys -> values."""
    interval = {int(record): i for i, record in enumerate(np.flatnonzero(file._records.follows))}
    cells = {}
    for name, table in file.tables().items():
        record = table.record
        items = np.array([*table.items, ""], dtype=object)[table.item]
        if name in ("disk", "filesystems"):
            first = np.searchsorted(record, record)
            items = [str(i) for i in np.arange(len(record)) - first]
        for column, values in table.values.items():
            for r, item, value in zip(record.tolist(), items, values.tolist(), strict=True):
                cells[interval[r], name, item, column] = value
    return cells


def text_like(value: float, text: str) -> str:
    """The value as sadf would print it: with as many decimals as its text."""
    decimals = len(text.partition(".")[2])
    shown = f"{value:.{decimals}f}"
    return shown[1:] if float(shown) == 0 and shown.startswith("-") else shown


def differences(theirs: Printed, mine: dict[tuple[int, str, str, str], float], *, skip=()) -> list[str]:
    """One line for each value that differs, and for each that only one side has."""
    lines = []
    for key, text in theirs.items():
        if key[1:4:2] in skip or key[1] in skip:
            continue
        value = mine.get(key)
        if value is None:
            lines.append(f"{key}: {text} only in sadf")
        elif math.isnan(value):
            if not abs(float(text)) > WRAPPED:
                lines.append(f"{key}: sadf {text}, here no value")
        elif text_like(value, text) != text.removeprefix("-" if float(text) == 0 else ""):
            lines.append(f"{key}: sadf {text}, here {value!r}")
    printed_rows = {key[:3] for key in theirs}
    extra = {key[:3] for key in mine if key[1] not in skip} - printed_rows
    return lines + [f"{key}: only here" for key in sorted(extra)]
