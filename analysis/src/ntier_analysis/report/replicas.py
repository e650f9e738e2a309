"""Tables of the replicas: what each executed, what the policy chose, and several policies side by side."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd

from ntier_analysis.comparison.conditions import REFUSED
from ntier_analysis.contracts.files import write_text
from ntier_analysis.errors import DataError
from ntier_analysis.figures import replicas as figures
from ntier_analysis.figures.drawing import Drawing, Origin, save, write_csv
from ntier_analysis.report.data import SweepData, read_sweep
from ntier_analysis.report.words import count, interval, number, share
from ntier_analysis.setting import MUST_EQUAL, differing, think_times_as_one
from ntier_analysis.statistics.balance import regret_summary, replica_shares
from ntier_analysis.wording import in_markdown


def policy_of(trials: pd.DataFrame) -> str:
    """`least_pending (tie first)`, `random`, or `unknown policy`; of several, joined."""
    rows = trials[["policy", "tie"]].drop_duplicates()
    names = [
        f"{r.policy} (tie {r.tie})" if r.policy == "least_pending" else str(r.policy)
        for r in rows.itertuples()
        if pd.notna(r.policy)
    ]
    return ", ".join(names) or "unknown policy"


def shares(data: SweepData) -> pd.DataFrame:
    """Share of each replica in the statements of each trial's run phase: trial, users, valid, item, share, low, high
    (95 %), per_s. Empty with one replica."""
    parts = []
    if data.statements["item"].nunique() > 1:
        for trial in data.trials.dropna(subset=["run_start_s", "run_end_s"]).itertuples():
            rates = data.statements[data.statements["trial"] == trial.trial]
            if len(rates):
                share = replica_shares(rates, trial.run_start_s, trial.run_end_s)
                parts.append(share.assign(trial=trial.trial, users=trial.users, valid=trial.valid))
    columns = ["trial", "users", "valid", "item", "share", "low", "high", "per_s"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def share_rows(data: SweepData) -> list[dict]:
    """One row of text per trial with several replicas."""
    return [
        {
            "trial": trial,
            "valid": bool(rows["valid"].iloc[0]),
            "users": count(rows["users"].iloc[0]),
            "per_s": number(rows["per_s"].sum()),
            "shares": ", ".join(f"{r.item} {share(r.share, r.low, r.high)}" for r in rows.itertuples()),
        }
        for trial, rows in shares(data).groupby("trial", sort=False)
    ]


def regrets(data: SweepData) -> pd.DataFrame:
    """Per traced trial in which there was something to choose: trial, users, valid, policy and the columns of
    `regret_summary`."""
    trials = data.trials.set_index("trial")
    rows = [
        {"trial": name, "users": trials.loc[name, "users"], "valid": bool(trials.loc[name, "valid"])}
        | {"policy": policy_of(trials.loc[[name]])}
        | regret_summary(group).to_dict()
        for name, group in data.choices.groupby("trial", sort=False)
        if (group["measure"] == "pending").any()
    ]
    return pd.DataFrame(rows).sort_values(["users", "trial"], ignore_index=True) if rows else pd.DataFrame()


def regret_rows(data: SweepData) -> list[dict]:
    return [
        {
            "trial": r.trial,
            "valid": r.valid,
            "policy": r.policy,
            "choices": count(r.choices),
            "least": _percent(r.least),
            "least_waiting": _percent(r.least_waiting),
            "first": _percent(r.first_of_least),
            "mean": number(r.regret_mean),
            "p99": count(r.regret_p99),
            "max": count(r.regret_max),
            "confirmed": _percent(r.seen_confirmed),
            "lost": count(r.lost),
        }
        for r in regrets(data).itertuples()
    ]


def _percent(value: float) -> str:
    return "–" if pd.isna(value) else f"{100 * value:.1f}"


# ---- several sweeps ------------------------------------------------------------------------------------------------


def compare(store: Path, sweeps: list[str]) -> tuple[pd.DataFrame, Drawing, Origin]:
    """Sweeps that differ in their policy -> table (one row per policy, load and repetition), figure and its origin.

    Raises DataError if a sweep has one replica only, or if topologies or other conditions differ."""
    data = [read_sweep(store, name) for name in sweeps]
    for sweep in data:
        if sweep.statements["item"].nunique() < 2:
            raise DataError(
                f"sweep {sweep.sweep!r}: one replica only, or no counters of the middleware: nothing to compare"
            )
    topologies = sorted({sweep.topology for sweep in data})
    if len(topologies) > 1:
        raise DataError(f"the sweeps are of different topologies: {', '.join(topologies)}; compare policies on one")
    if odd := _conditions(data):
        raise DataError(odd)
    labels = _labels(data)
    table = pd.concat(
        [_policy_table(sweep, label) for sweep, label in zip(data, labels, strict=True)], ignore_index=True
    )
    drawing = figures.policies(
        pd.concat([sweep.statements.assign(label=label) for sweep, label in zip(data, labels, strict=True)]),
        pd.concat([sweep.trials.assign(label=label) for sweep, label in zip(data, labels, strict=True)]),
        pd.concat([shares(sweep).assign(label=label) for sweep, label in zip(data, labels, strict=True)]),
        pd.concat([sweep.choices.assign(label=label) for sweep, label in zip(data, labels, strict=True)]),
    )
    trials = tuple(f"{sweep.sweep}/{t}" for sweep in data for t in sweep.trials["trial"])
    commits = ", ".join(sorted({sweep.origin.commit for sweep in data}))
    commands = "; ".join(sweep.command for sweep in data if sweep.command)
    return table, drawing, Origin(", ".join(sweeps), topologies[0], trials, data[0].scale, commits, commands)


def _conditions(data: list[SweepData]) -> str:
    """In what two of the sweeps differ so that numbers beside each other say nothing of the policy; empty: in none."""
    for a, b in itertools.combinations(data, 2):
        odd = differing(a.trials, b.trials, REFUSED)
        if think_times_as_one(a.trials, b.trials):
            odd.pop("think_time_s", None)
        for column, (one, two) in odd.items():
            if "unknown" not in (one, two):
                return f"{a.sweep} and {b.sweep}: {column} is {one} and {two}: {MUST_EQUAL[column]}"
    return ""


def _labels(data: list[SweepData]) -> list[str]:
    names = [policy_of(sweep.trials) for sweep in data]
    middlewares = {str(m) for sweep in data for m in sweep.trials["middleware"].dropna().unique()}
    if len(middlewares) > 1:
        names = [f"{sweep.trials['middleware'].iloc[0]}: {name}" for sweep, name in zip(data, names, strict=True)]
    return [f"{n} #{names[: i + 1].count(n)}" if names.count(n) > 1 else n for i, n in enumerate(names)]


def _policy_table(data: SweepData, label: str) -> pd.DataFrame:
    """Columns policy, sweep, trial, users, valid, throughput and response time as in the table trials, <replica>_share
    with _low and _high, and those of `regret_summary` if there is a trace."""
    columns = ["trial", "users", "rep", "valid", "throughput_per_s", "throughput_low_per_s", "throughput_high_per_s",
               "response_time_mean_ms", "response_time_p95_ms"]  # fmt: skip
    wide = shares(data).pivot(index="trial", columns="item", values=["share", "low", "high"])
    wide.columns = [f"{item}_share" + ("" if kind == "share" else f"_{kind}") for kind, item in wide.columns]
    table = data.trials[columns].merge(wide, left_on="trial", right_index=True, how="left")
    traced = regrets(data)
    if len(traced):
        table = table.merge(traced.drop(columns=["users", "valid", "policy"]), on="trial", how="left")
    table.insert(0, "policy", label)
    table.insert(1, "sweep", data.sweep)
    return table.sort_values(["users", "rep"])


def compare_text(table: pd.DataFrame) -> str:
    """The table for a terminal, and as Markdown: loads together, so that policies stand below each other."""
    replicas = [c.removesuffix("_share") for c in table.columns if c.endswith("_share")]
    head = ["users", "policy", "valid", "throughput/s [95 %]", "mean ms", "p95 ms", *(f"{r} [95 %]" for r in replicas)]
    head += ["least loaded chosen %", "mean regret"] if "least" in table else []
    lines = ["| " + " | ".join(map(in_markdown, head)) + " |", "|" + "---|" * len(head)]
    for row in table.sort_values(["users", "policy", "rep"]).to_dict("records"):
        cells = [f"{row['users']:,}", row["policy"], "yes" if row["valid"] else "INVALID"]
        cells.append(interval(row["throughput_per_s"], row["throughput_low_per_s"], row["throughput_high_per_s"]))
        cells += [number(row["response_time_mean_ms"]), number(row["response_time_p95_ms"])]
        cells += [share(row[f"{r}_share"], row[f"{r}_share_low"], row[f"{r}_share_high"]) for r in replicas]
        cells += [_percent(row["least"]), number(row["regret_mean"])] if "least" in table else []
        lines.append("| " + " | ".join(map(in_markdown, cells)) + " |")
    return "\n".join(lines) + "\n"


def write_comparison(store: Path, sweeps: list[str], out: Path) -> tuple[str, Path]:
    """Writes `<out>/policies.md`, `policies-table.csv`, `policies.{png,pdf,csv}`; returns table and folder."""
    table, drawing, origin = compare(store, sweeps)
    save(drawing, origin, out)
    write_csv(table, out / "policies-table.csv", origin)
    text = compare_text(table)
    picture = f"![{drawing.finding}]({drawing.name}.png)"
    parts = [f"# {origin.topology}: policies side by side", drawing.finding, text.strip(), picture, drawing.caption]
    write_text(out / "policies.md", "\n\n".join(parts) + "\n")
    return text, out
