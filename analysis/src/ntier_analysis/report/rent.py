"""Cost of a sweep on rented machines, from the manifests of its trials."""

from __future__ import annotations

import math
from typing import Any

from ntier_analysis.wording import counted

HOUR_S = 3600.0


def cost(manifests: list[dict]) -> dict[str, Any] | None:
    """{currency, amount, machine_hours, machines, price_per_hour, location, source}: every machine from when it was
    asked for until the last trial on it ended, in started hours. None if nothing was rented. Hours that begin later,
    while results are stored or machines are given back, are not in it."""
    machines: dict[tuple[str, float], tuple[float, float]] = {}
    rents = [m["rent"] for m in manifests if m.get("rent")]
    if not rents:
        return None
    for manifest in (m for m in manifests if m.get("rent")):
        rent, end = manifest["rent"], _end_s(manifest)
        for node, price in rent["price_per_hour"].items():
            since = rent["since_s"].get(node, end)
            machines[node, since] = (price, max(end, machines.get((node, since), (0, 0))[1]))
    hours = {key: max(1, math.ceil((end - key[1]) / HOUR_S)) for key, (_, end) in machines.items()}
    last = rents[-1]
    return {
        "currency": last["currency"],
        "amount": round(sum(hours[key] * price for key, (price, _) in machines.items()), 4),
        "machine_hours": sum(hours.values()),
        "machines": len(machines),
        "price_per_hour": round(sum(last["price_per_hour"].values()), 4),
        "location": last.get("location", ""),
        "source": last.get("source", ""),
    }


def _end_s(manifest: dict) -> float:
    """When the trial was over: its last step, else the planned end of its last phase."""
    times = [step["t_s"] for step in manifest.get("steps", []) if "t_s" in step]
    return max([*times, *(p["end_s"] for p in manifest.get("phases", []) if p.get("end_s"))], default=0.0)


def sentence(found: dict[str, Any]) -> str:
    hours, machines = counted(found["machine_hours"], "hour"), counted(found["machines"], "machine")
    known = f"The rented machines cost {found['amount']:.2f} {found['currency']}"
    told = known if found["price_per_hour"] else "The rented machines have no known price"
    return f"{told}: {hours} begun on {machines}, until the last trial ended."


def pairs(manifests: list[dict]) -> list[tuple[str, str]]:
    """Rows for the report's provenance; none if nothing was rented."""
    found = cost(manifests)
    if found is None:
        return []
    types: dict[str, list[str]] = {}
    last = [m["rent"] for m in manifests if m.get("rent")][-1]
    for node, type_ in last.get("types", {}).items():
        types.setdefault(type_, []).append(node)
    per_hour = found["price_per_hour"]
    price = f"{per_hour:.4g} {found['currency']} per hour" if per_hour else "not known"
    return [
        ("cost", sentence(found)),
        ("price", f"{price}; {found['source']}"),
        ("location", found["location"] or "unknown"),
        *((type_, ", ".join(nodes)) for type_, nodes in types.items()),
    ]
