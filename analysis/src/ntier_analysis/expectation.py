"""Expectations of verdicts, for `ntier-analysis check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from ntier_analysis.errors import DataError
from ntier_analysis.verdict.store import verdicts
from ntier_analysis.verdict.tables import as_json


def differences(store: Path, expected: Path) -> list[str]:
    """`expected`: JSON {sweep: {key: value}}, keys as in the verdict's JSON; a number may be [low, high], a bottleneck
    {"tier", "resource"} must be the first one. One sentence per expectation that does not hold."""
    try:
        wanted = orjson.loads(expected.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise DataError(f"{expected}: not readable as JSON ({error})") from error
    if not isinstance(wanted, dict) or not all(isinstance(v, dict) for v in wanted.values()):
        raise DataError(f"{expected}: expected an object {{sweep: {{key: value}}}}")
    found = {v.sweep: as_json(v) for v in verdicts(store, list(wanted))}
    return [text for sweep, keys in wanted.items() for text in _differences(sweep, keys, found[sweep], expected)]


def _differences(sweep: str, keys: dict[str, Any], found: dict[str, Any], source: Path) -> list[str]:
    wrong = []
    for key, value in keys.items():
        if key == "bottleneck":
            seen: Any = found["bottlenecks"][0] if found["bottlenecks"] else None
            holds = seen is not None and all(seen.get(k) == v for k, v in value.items())
        elif key not in found:
            raise DataError(f"{source}: {sweep}: unknown key {key!r}; allowed are bottleneck, {', '.join(found)}")
        else:
            seen = found[key]
            ranged = isinstance(value, list) and len(value) == 2 and isinstance(seen, int | float)
            holds = value[0] <= seen <= value[1] if ranged else seen == value
        if not holds:
            wrong.append(f"{sweep}: {key} is {seen!r}, expected {value!r}")
    return wrong
