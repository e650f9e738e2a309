"""The report's tables: frames for CSV, and rows of text for the page."""

from __future__ import annotations

import math

import pandas as pd

from ntier_analysis import recovery
from ntier_analysis.contracts.system import NOT_TIERS
from ntier_analysis.figures.style import tier_order
from ntier_analysis.prediction.demands import node_demands
from ntier_analysis.report import rent
from ntier_analysis.report.data import SweepData
from ntier_analysis.report.words import count, interval, named, number, share
from ntier_analysis.wording import counted, resource, why_invalid

MOST_VALUES = 3
"""Different values of one thing that provenance lists."""
OUTCOMES = ["fail", "undecidable", "pass"]


def hottest(data: SweepData) -> pd.DataFrame:
    """Per trial the system's node and resource with the largest saturation, columns of the store's table."""
    rows = data.saturation[~data.saturation["tier"].isin(NOT_TIERS) & (data.saturation["resource"] != "pool")]
    ranked = rows.sort_values(["saturation", "utilization_mean_pct"], ascending=False)
    return ranked.drop_duplicates("trial").set_index("trial")


def trial_rows(data: SweepData) -> list[dict]:
    """One row of text per trial, invalid ones included."""
    hot = hottest(data)
    judged = {t["trial"]: t for t in data.verdict["trials"]}
    rows = []
    for t in data.trials.itertuples():
        top = hot.loc[t.trial] if t.trial in hot.index else None
        low, high = t.throughput_low_per_s, t.throughput_high_per_s
        nominal = (None if pd.isna(v) else v / t.scale for v in (t.throughput_per_s, low, high))
        rows.append(
            {
                "trial": t.trial,
                "users": f"{t.users:,}",
                "users_real": count(t.users_real),
                "valid": t.valid,
                "reasons": why_invalid(t),
                "attempts": t.attempts,
                "n": count(t.interactions),
                "throughput": "–" if pd.isna(t.throughput_per_s) else interval(t.throughput_per_s, low, high),
                "nominal": "–" if pd.isna(t.throughput_per_s) else interval(*nominal),
                "goodput": number(t.goodput_per_s),
                "mean": number(t.response_time_mean_ms),
                "p50": number(t.response_time_p50_ms),
                "p95": number(t.response_time_p95_ms),
                "p99": number(t.response_time_p99_ms),
                "errors": count(t.errors),
                "hot": "–" if top is None else f"{top.node} {resource(top.resource)}",
                "saturation": "–" if top is None else share(top.saturation, top.saturation_low, top.saturation_high),
                "verdict": named(judged[t.trial]) if t.trial in judged else "–",
                "explained": percent(judged.get(t.trial, {}).get("explained_share")),
            }
        )
    return rows


def recovery_rows(data: SweepData) -> list[dict]:
    """One row of text per load that was also measured from above."""
    return [
        {
            "users": count(r.users),
            "above": count(r.above),
            "after_reset": number(r.reset_per_s),
            "from_above": number(r.above_per_s),
            "ratio": recovery.share(r.ratio),
            "outcome": r.outcome,
            "margin": percent(r.margin),
            "basis": r.basis,
            "away": r.outcome == recovery.AWAY,
        }
        for r in data.recovery
    ]


def percent(value: float | None) -> str:
    """Of a share of 1."""
    return "–" if value is None or pd.isna(value) else f"{100 * value:.0f} %"


def check_rows(checks: pd.DataFrame) -> list[dict]:
    """One row per check over all trials: how often it passed, failed, could not be decided, and its worst value."""
    rows = []
    for (name, title, required), group in checks.groupby(["id", "title", "required"], sort=False):
        counts = group["outcome"].value_counts()
        values, unit = group["value"].dropna(), str(group["unit"].iloc[0] or "")
        rows.append(
            {
                "id": name,
                "title": title,
                "required": bool(required),
                "passed": int(counts.get("pass", 0)),
                "failed": int(counts.get("fail", 0)),
                "undecidable": int(counts.get("undecidable", 0)),
                "seen": _range(values, unit),
                "limit": _range(group["limit"].dropna(), unit),
            }
        )
    return sorted(rows, key=lambda r: (not r["required"], r["id"]))


def _range(values: pd.Series, unit: str) -> str:
    if values.empty:
        return "–"
    low, high = number(values.min()), number(values.max())
    return _with_unit(values.max(), unit) if low == high else f"{low} … {_with_unit(values.max(), unit)}"


def _with_unit(value: float | None, unit: str | None) -> str:
    return f"{number(value)} {'%' if unit == 'pct' else unit or ''}".strip()


def check_details(checks: pd.DataFrame) -> list[dict]:
    """Every check that did not pass, with value, limit, n and standard error."""
    open_ = checks[checks["outcome"] != "pass"].sort_values(
        ["required", "outcome", "trial"], ascending=[False, True, True]
    )
    return [
        {
            "trial": c.trial,
            "id": c.id,
            "title": c.title,
            "required": c.required,
            "outcome": c.outcome,
            "value": _with_unit(c.value, c.unit),
            "limit": _with_unit(c.limit, c.unit),
            "n": count(c.n),
            "standard_error": number(c.standard_error),
            "detail": c.detail or "",
        }
        for c in open_.itertuples()
    ]


def sweep_check_rows(checks: pd.DataFrame) -> list[dict]:
    """The checks of all trials together, failed ones first."""
    ordered = checks.assign(rank=checks["outcome"].map(OUTCOMES.index)).sort_values("rank", kind="stable")
    return [
        {
            "id": c.id,
            "title": c.title,
            "outcome": c.outcome,
            "value": "–" if pd.isna(c.value) else _with_unit(c.value, _plain(c.unit)),
            "limit": "–" if pd.isna(c.limit) else f"{c.limit:g} {c.unit.replace('pct', '%')}",
            "detail": "" if pd.isna(c.detail) else c.detail,
        }
        for c in ordered.itertuples()
    ]


def _plain(unit: str | None) -> str:
    """Without what belongs to the limit: `pct (at least)`."""
    return "" if unit is None or pd.isna(unit) else str(unit).partition(" (")[0]


def sweep_check_summary(rows: list[dict]) -> str:
    """`12 checks of the whole sweep: 1 fail, 3 undecidable, 8 pass`."""
    counts = [(outcome, sum(r["outcome"] == outcome for r in rows)) for outcome in OUTCOMES]
    return f"{counted(len(rows), 'check')} of the whole sweep: {', '.join(f'{n} {name}' for name, n in counts if n)}"


def demands(data: SweepData) -> pd.DataFrame:
    """Service demand of each server node, by the utilization law over the valid loads below saturation. Nodes of which
    it is not known when they are full come first, then those that are full first.

    Columns node, tier, demand_ms, demand_error_ms (of one core per interaction), low_ms, high_ms (95 %; NaN with
    fewer than three loads), idle_cores, full_at_per_s (throughput at which its CPU is full), loads, p, reason
    (why it is not known when it is full; else empty)."""
    nodes = data.nodes.groupby("node")[["tier", "cpu_cores"]].first()
    rows = []
    for node, demand in node_demands(data.trials, data.used_cores, data.nodes).items():
        tier, cores = nodes.loc[node, ["tier", "cpu_cores"]]
        if isinstance(demand, str):
            rows.append((node, tier, *[math.nan] * 6, 0, math.nan, demand))
            continue
        ends = [1e3 * v for v in (demand.demand_s, demand.demand_error_s, demand.interval.low, demand.interval.high)]
        grows = demand.demand_s > 0
        full = (cores - demand.idle_cores) / demand.demand_s if grows else math.nan
        reason = "" if grows else "does not grow with throughput"
        rows.append((node, tier, *ends, demand.idle_cores, full, demand.loads, demand.p, reason))
    ends = ["demand_ms", "demand_error_ms", "low_ms", "high_ms"]
    columns = ["node", "tier", *ends, "idle_cores", "full_at_per_s", "loads", "p", "reason"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("full_at_per_s", ignore_index=True, na_position="first", kind="stable")


def demand_rows(data: SweepData) -> list[dict]:
    return [
        {
            "node": d.node,
            "tier": d.tier,
            "demand": f"{number(d.demand_ms)} [{number(d.low_ms)}, {number(d.high_ms)}]"
            + (f" ({d.reason})" if d.reason else ""),
            "idle": number(d.idle_cores, 2),
            "n": d.loads,
            "p": number(d.p, 2),
        }
        for d in demands(data).itertuples()
    ]


def mix(data: SweepData) -> pd.DataFrame:
    """Interactions of the valid trials' run phases: count, errors, share and target share, percent (target: NaN where
    the transition table is not at hand)."""
    targets = data.mix_targets
    valid = data.trials.loc[data.trials["valid"], "trial"]
    rows = data.interactions[(data.interactions["phase"] == "run") & data.interactions["trial"].isin(valid)]
    frame = rows.groupby("interaction")["ok"].agg(count="size", errors=lambda ok: int((~ok).sum())).reset_index()
    for name in sorted(targets.keys() - set(frame["interaction"])):
        frame.loc[len(frame)] = [name, 0, 0]
    frame["share_pct"] = 100.0 * frame["count"] / max(int(frame["count"].sum()), 1)
    frame["target_pct"] = [100.0 * targets.get(i, float("nan")) for i in frame["interaction"]]
    return frame.sort_values("count", ascending=False, ignore_index=True)


def mix_rows(data: SweepData) -> list[dict]:
    return [
        {
            "interaction": m.interaction,
            "count": f"{m.count:,}",
            "errors": f"{m.errors:,}",
            "share": f"{m.share_pct:.1f}",
            "target": "–" if pd.isna(m.target_pct) else f"{m.target_pct:.1f}",
        }
        for m in mix(data).itertuples(index=False, name="Mix")
    ]


def node_rows(data: SweepData) -> list[dict]:
    """Nodes of the sweep, once each, in the order of the request's way."""
    nodes = data.nodes.drop(columns=["sweep", "trial"]).drop_duplicates()
    ordered = sorted(nodes.itertuples(), key=lambda n: (tier_order(n.tier), len(n.node), n.node))
    return [
        {
            "node": n.node,
            "tier": n.tier,
            "node_type": _or_dash(n.node_type),
            "role": _or_dash(n.role),
            "cores": "not limited" if pd.isna(n.cpu_cores) else f"{n.cpu_cores:g}",
            "memory": "not limited" if pd.isna(n.memory_bytes) else f"{n.memory_bytes / 2**20:,.0f}",
            "disk": "not limited" if pd.isna(n.disk_bytes_s) else f"{n.disk_bytes_s / 1e6:g}",
            "network": "not limited" if pd.isna(n.network_bits_s) else f"{n.network_bits_s / 1e6:g}",
        }
        for n in ordered
    ]


def _or_dash(text: object) -> str:
    return "–" if pd.isna(text) or not text else str(text)


def provenance(data: SweepData) -> list[dict]:
    """Groups of (key, value): the experiment, its soft resources, versions and the machine. Values that differ between
    trials are all shown."""
    trials = data.trials
    phases = {
        "run phase": (trials["run_end_s"] - trials["run_start_s"]).round(1),
        "ramp-up": (trials["run_start_s"] - trials["ramp_up_start_s"]).round(1),
        "ramp-down": (trials["ramp_down_end_s"] - trials["run_end_s"]).round(1),
    }
    experiment = [
        (c.replace("_", " "), _values(trials[c]))
        for c in ("mix", "middleware", "data_profile", "target", "scale", "seed")
    ]
    experiment += [(name, _values(seconds, " s")) for name, seconds in phases.items() if seconds.notna().any()]
    experiment += [
        ("think time", _values(trials["think_time_s"], " s")),
        ("git commit", _values(trials["git_commit"])),
    ]
    if data.manifests:
        trees = {m.get("git_clean") for m in data.manifests}
        experiment.append(("working tree", "clean" if trees == {True} else "changed since the commit, or unknown"))
    groups = [{"title": "Experiment", "pairs": experiment}]
    machines = [_own_machines(m) for m in data.manifests]
    if any(machines):
        groups.append({"title": "Machines of the nodes", "pairs": _pairs(machines)})
    if rented := rent.pairs(data.manifests):
        groups.append({"title": "Rented machines", "pairs": rented})
    host = "Controller" if any(machines) else "Machine"
    for title, part in (("Soft resources", "soft_resources"), ("Versions", "versions"), (host, "host")):
        pairs = _pairs([m.get(part) or {} for m in data.manifests])
        if pairs:
            groups.append({"title": title, "pairs": pairs})
    if not data.manifests:
        groups.append(
            {
                "title": "Versions and machine",
                "pairs": [("not at hand", "the manifests of the trials are not beside this store")],
            }
        )
    return groups


def _own_machines(manifest: dict) -> dict[str, str]:
    """Node -> size of its own machine; empty if one machine carries them all."""
    whole = [n for n in manifest.get("nodes", []) if n.get("cores")]
    return {n["name"]: f"{counted(n['cores'], 'core')}, {(n.get('memory_bytes') or 0) / 2**30:.1f} GiB" for n in whole}


def _values(column: pd.Series, unit: str = "") -> str:
    """The different values; of many numbers the ends. `unit`: after the last one."""
    values = sorted(column.dropna().unique(), key=lambda v: (isinstance(v, str), v))
    shown = [f"{v:.10g}" if isinstance(v, float) else str(v) for v in values]
    return _listed(shown, "to" if values and not isinstance(values[0], str) else "…", unit) or "–"


def _listed(shown: list[str], between: str = "…", unit: str = "") -> str:
    """All of few; else the first and the last one."""
    if len(shown) <= MOST_VALUES:
        return ", ".join(shown) + (unit if shown else "")
    return f"{shown[0]} {between} {shown[-1]}{unit} ({len(shown)} different values)"


def _pairs(parts: list[dict]) -> list[tuple[str, str]]:
    """Keys of nested dictionaries joined by dots, each with the different values that the trials have."""
    seen: dict[str, list[str]] = {}
    for part in parts:
        for key, value in _flat(part):
            values = seen.setdefault(key, [])
            if value not in values:
                values.append(value)
    return [(key, _listed(values)) for key, values in seen.items()]


def _flat(part: dict, prefix: str = "") -> list[tuple[str, str]]:
    pairs = []
    for key, value in part.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        elif value is not None and value != "":
            pairs.append((f"{prefix}{key}", ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return pairs


def chain_rows(data: SweepData) -> list[dict]:
    """One row of text per trial and database whose disk moves something else with it."""
    users = data.trials.set_index("trial")["users"]
    return [
        {"trial": trial, "users": count(users[trial]), "turned": chain.turned_away, "text": chain.text}
        for trial, chains in data.chains.items()
        for chain in chains
    ]
