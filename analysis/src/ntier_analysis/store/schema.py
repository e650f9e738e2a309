"""The tables of the store: one definition and one unit per column.

Layout: `<store>/<table>/<sweep>.parquet`, zstd, one file per table and sweep (many trials each); `samples` lie there as
series (store/series.py). Keys are `sweep, trial`. Times are UTC epoch seconds on the controller's clock. A missing
value is null, never 0.

The allowed values of a column stand beside its definition. store/validation.py checks them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ntier_analysis.contracts.system import LoadModel

if TYPE_CHECKING:
    import pandas as pd
    import pandera.pandas as pandera

STORE_SCHEMA = 2
"""Written into each file's metadata as `ntier_store_schema`. Raised when a column changes its meaning or goes away, or
is written in another way; `ingest` then makes the files anew. New columns and tables do not raise it: where a file
lacks them, they are null or empty. Version 2: samples are written as series (store/series.py)."""
READABLE = (1, STORE_SCHEMA)
"""Versions that are read; `store migrate` brings them to the newest. Others are refused."""

PHASES = ("ramp_up", "run", "ramp_down", "outside")
"""Values of `phase`; `outside` = before the first or after the last phase."""

_TYPES = {
    "text": pa.string(),
    "number": pa.float64(),
    "count": pa.int64(),
    "flag": pa.bool_(),
    "label": pa.dictionary(pa.int32(), pa.string()),
}


@dataclass(frozen=True)
class Rule:
    """What a column may hold: `text` says it in words. Bounds are allowed themselves unless `above`; infinities never
    are. `filled`: null (in text also nothing) is not allowed. `new`: older stores may hold other values, so the rule is
    not checked at reading."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    values: tuple[str, ...] = ()
    pattern: str = ""
    filled: bool = False
    new: bool = False

    @property
    def ends_in(self) -> tuple[bool, bool]:
        """Whether the bounds are allowed themselves; an infinite one is not, so that only finite numbers pass."""
        return not self.above and math.isfinite(self.low), math.isfinite(self.high)

    def check(self) -> pandera.Check:
        import pandera.pandas as pandera

        if self.values:
            return pandera.Check.isin(self.values)
        if self.pattern:
            return pandera.Check(self._matching)
        low_in, high_in = self.ends_in
        return pandera.Check.in_range(self.low, self.high, include_min=low_in, include_max=high_in)

    def _matching(self, column: pd.Series) -> pd.Series:
        """Millions of rows hold few names."""
        return column.isin([name for name in column.unique() if re.match(self.pattern, str(name))])


NAME = Rule("letters, digits and . _ + -, at most 200", pattern=r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}\Z", filled=True)
TEXT = Rule("a name", pattern=r"\S", filled=True)
FINITE = Rule("a finite number")
NOT_NEGATIVE = Rule("a number >= 0", low=0)
POSITIVE = Rule("a number > 0", low=0, above=True)
ONE_OR_MORE = Rule("a whole number >= 1", low=1)
A_COUNT = Rule(ONE_OR_MORE.text, low=1, filled=True)
A_SCALE = Rule("a number > 0", low=0, above=True, filled=True)
SHARE = Rule("a number from 0 to 1", low=0, high=1)
TIME = Rule("seconds since 1970, from 0 to 1e11 (divide milliseconds by 1000)", low=0, high=1e11)
A_TIME = Rule(TIME.text, low=0, high=1e11, filled=True)
RESOURCES = ("cpu", "disk", "network", "memory", "pool", "lock", "queue", "query", "jvm", "thread")
RESOURCE = Rule("one of " + ", ".join(RESOURCES), values=RESOURCES, filled=True, new=True)
MODELS = tuple(m.value for m in LoadModel)
LOAD_MODEL = Rule("one of " + ", ".join(MODELS), values=MODELS)
STATE = Rule("planned, running, collected or failed", values=("planned", "running", "collected", "failed"))
OUTCOME = Rule("pass, fail or undecidable", values=("pass", "fail", "undecidable"), filled=True)
PHASE = Rule("one of " + ", ".join(PHASES), values=PHASES, filled=True)

RULES: dict[str, dict[str, Rule]] = {}
"""table -> column -> what it may hold; a column without a rule may hold anything of its type."""
_COLUMNS: dict[str, dict[str, tuple]] = {}
"""table -> column -> as given to `_schema`."""


def _schema(table: str, **columns: tuple) -> pa.Schema:
    """name=(type, unit, definition) or name=(type, unit, definition, rule); the unit is empty where there is none."""
    _COLUMNS[table] = columns
    RULES[table] = {name: rule for name, (_, _, _, *rules) in columns.items() for rule in rules}
    fields = [
        pa.field(name, _TYPES[kind], metadata={"unit": unit, "definition": definition})
        for name, (kind, unit, definition, *_) in columns.items()
    ]
    return pa.schema(fields, metadata={"ntier_store_schema": str(STORE_SCHEMA)})


def _as_in(table: str, names: str) -> dict[str, tuple]:
    """Columns that another table has, too."""
    return {name: _COLUMNS[table][name] for name in names.split()}


_KEYS = {
    "sweep": ("label", "", "One topology, mix and middleware over a range of users.", NAME),
    "trial": ("label", "", "Name of the trial in the sweep, for example u08000.r01."),
}

TRIALS = _schema(
    "trials",
    sweep=_KEYS["sweep"],
    trial=(*_KEYS["trial"], TEXT),
    topology=("label", "", "Topology in W/A/C/D notation, for example 1/2/1/9M.", TEXT),
    mix=("label", "", "Mix of interactions, for example browse_only."),
    middleware=("label", "", "Middleware between the app and db tiers."),
    users=("count", "users", "Nominal number of concurrent users.", A_COUNT),
    users_real=("count", "users", "Users that were really emulated: nominal users x scale.", ONE_OR_MORE),
    scale=("number", "", "Multiplies node capacity and users; 1: nothing, or the nodes alone.", A_SCALE),
    rep=("count", "", "Number of the repetition, from 1.", ONE_OR_MORE),
    valid=("flag", "", "No required validity check failed or was undecidable, and the trial was collected."),
    invalid_reasons=("text", "", "Reasons of the failed required checks, joined by ', '; empty if valid."),
    run_start_s=("number", "s", "Start of the run phase.", TIME),
    run_end_s=("number", "s", "End of the run phase (exclusive).", TIME),
    throughput_per_s=(
        "number",
        "1/s",
        "Interactions completed without error per second of the run phase.",
        NOT_NEGATIVE,
    ),
    goodput_per_s=(
        "number",
        "1/s",
        "The part of the throughput whose response time was within the objective (slo_ms, or the interaction's own).",
        NOT_NEGATIVE,
    ),
    response_time_mean_ms=(
        "number",
        "ms",
        "Mean response time of the successes completed in the run phase.",
        NOT_NEGATIVE,
    ),
    response_time_p50_ms=("number", "ms", "Median of the same.", NOT_NEGATIVE),
    response_time_p95_ms=("number", "ms", "95th percentile of the same; null if too few.", NOT_NEGATIVE),
    response_time_p99_ms=("number", "ms", "99th percentile of the same; null if too few (n < 1,000).", NOT_NEGATIVE),
    errors=("count", "", "Interactions completed in the run phase that failed.", NOT_NEGATIVE),
    # beyond the contract
    throughput_low_per_s=(
        "number",
        "1/s",
        "Lower end of the 95 % interval of the throughput (10 batch means).",
        FINITE,
    ),
    throughput_high_per_s=("number", "1/s", "Upper end of the same.", NOT_NEGATIVE),
    interactions=("count", "", "Successes completed in the run phase.", NOT_NEGATIVE),
    pending=("count", "", "Interactions begun before the end of the run phase and not completed in it.", NOT_NEGATIVE),
    idc=("number", "", "Index of dispersion of the 1-s counts of completions: variance / mean.", NOT_NEGATIVE),
    think_time_s=("number", "s", "Mean of the distribution that think times are drawn from.", NOT_NEGATIVE),
    think_measured_s=(
        "number",
        "s",
        "Measured think seconds in the run phase per completed interaction; of work, what its workers paused.",
        NOT_NEGATIVE,
    ),
    slo_ms=("number", "ms", "Response-time objective of the goodput; null if none was set.", POSITIVE),
    seed=("count", "", "Seed of the random draws."),
    attempt=("count", "", "Which attempt of the trial this is; earlier ones are kept in raw.", ONE_OR_MORE),
    attempts=("count", "", "Attempts of this trial that raw holds.", ONE_OR_MORE),
    state=("label", "", "planned, running, collected or failed.", STATE),
    failure=("text", "", "Why the trial failed; empty if it did not."),
    data_profile=("label", "", "Size of the data set."),
    target=("label", "", "Where the nodes ran, for example local."),
    ramp_up_start_s=("number", "s", "Start of the ramp-up phase.", TIME),
    ramp_down_end_s=("number", "s", "End of the ramp-down phase.", TIME),
    git_commit=("text", "", "Commit of the program that ran the trial."),
    policy=("label", "", "How the middleware balances reads, for example least_pending; null if unknown."),
    tie=("label", "", "Which of several least-loaded replicas least_pending takes: first or random."),
    settings=(
        "label",
        "",
        "Settings that were asked for (SET), JSON, but policy and tie; null: not told, taken as none.",
    ),
    tiers=("text", "", "Tiers from the client inwards, joined by ','; null: W/A/C/D, or (imported) an unknown order."),
    system=(
        "label",
        "",
        "The system in the manifest, JSON, without the factor's value; null: the manifest names none.",
    ),
    load_model=(
        "label",
        "",
        "closed (users who think), open (arrivals at a rate), work (an amount); null: closed.",
        LOAD_MODEL,
    ),
    factor=("label", "", "Variable that the sweep changes from trial to trial; null: users."),
    factor_unit=("label", "", "Unit of the factor; empty where it has none."),
    factor_value=("number", "", "Value of the factor, in its unit; null: users.", FINITE),
    offered_per_s=("number", "1/s", "Open load: interactions begun per second of the run phase.", NOT_NEGATIVE),
    backlog_growth_per_s=(
        "number",
        "1/s",
        "Open load: growth of the number of interactions under way.",
        FINITE,
    ),
    backlog_error_per_s=("number", "1/s", "Standard error of the same (10 parts of the run).", NOT_NEGATIVE),
    not_validated=("text", "", "What was not checked of an imported trial, joined by '; '; null if not imported."),
)

INTERACTIONS = _schema(
    "interactions",
    **_KEYS,
    t_s=("number", "s", "Completion of the interaction: its start + response time.", A_TIME),
    phase=("label", "", "Phase in which it completed: ramp_up, run, ramp_down or outside.", PHASE),
    interaction=("label", "", "Name of the interaction (state of the mix).", TEXT),
    response_time_ms=(
        "number",
        "ms",
        "From the first byte sent to the last byte of page and images received.",
        NOT_NEGATIVE,
    ),
    ok=("flag", "", "Whether it succeeded (HTTP status < 400 and no ERROR page)."),
    bytes=("count", "bytes", "Received bytes.", NOT_NEGATIVE),
    client=("label", "", "Client node that ran it."),
)

SAMPLES = _schema(
    "samples",
    **_KEYS,
    t_s=("number", "s", "End of the sampling interval (moment of the reading for a gauge).", A_TIME),
    phase=("label", "", "Phase in which t_s falls: ramp_up, run, ramp_down or outside.", PHASE),
    node=("label", "", "Name of the node, or host.", TEXT),
    tier=("label", "", "web, app, middleware, db, client or host; imported nodes may have others.", TEXT),
    resource=("label", "", "cpu, disk, network, memory, pool, lock, queue, query, jvm or thread.", RESOURCE),
    metric=("label", "", "What was measured, unit as suffix; utilization_pct for what saturates.", TEXT),
    value=("number", "", "The value, in `unit`; null in a gap or where a counter ran backwards.", FINITE),
    unit=("label", "", "Unit of the value: pct, bytes, per_s, ..."),
    source=("label", "", "Collector it came from: cgroup, procstat, sysstat, host_stat, pressure, mysql_status, ..."),
    item=("label", "", "Part of the resource: device, interface, pool or replica; empty = the whole."),
    interval_s=("number", "s", "Length of the sampling interval; null for a gauge.", POSITIVE),
)

VERDICTS = _schema(
    "verdicts",
    **_KEYS,
    scope=("label", "", "`trial` or `sweep` (then `trial` is empty)."),
    users=("count", "users", "Nominal users of the trial; null for a sweep."),
    verdict=("label", "", "none, single, multi, hidden or unknown; one row per bottleneck, one row if there is none."),
    kind=("label", "", "stable, simultaneous or alternating; empty if there is no bottleneck."),
    tier=("label", "", "Tier of the bottleneck."),
    resource=("label", "", "Resource of the bottleneck."),
    nodes=("text", "", "Nodes that saturate, joined by ', '."),
    saturation=("number", "", "Share of the run phase at or above the threshold of utilization (95 %), 0..1."),
    saturation_low=("number", "", "Lower end of its 95 % interval."),
    saturation_high=("number", "", "Upper end of the same."),
    evidence=("text", "", "Sentences that led to the verdict, one per line."),
    # beyond the contract
    analysis_version=("label", "", "Version of the package and digest of the rules that made the verdict."),
    document=("text", "", "The sweep's whole verdict as JSON, in the first row of scope `sweep`; else null."),
)

SATURATION = _schema(
    "saturation",
    **_KEYS,
    users=("count", "users", "Nominal users of the trial."),
    node=("label", "", "Name of the node, or host."),
    tier=("label", "", "Tier of the node."),
    resource=("label", "", "cpu, disk, network, pool, ..."),
    item=("label", "", "Part of the resource; empty = the whole."),
    source=("label", "", "Collector it came from."),
    threshold_pct=("number", "pct", "Threshold of utilization: 90, 95 or 99."),
    saturation=("number", "", "Share of the run phase's samples at or above the threshold, 0..1.", SHARE),
    saturation_low=("number", "", "Lower end of its 95 % interval.", SHARE),
    saturation_high=("number", "", "Upper end of the same.", SHARE),
    n=("count", "", "Samples in the run phase.", NOT_NEGATIVE),
    n_missing=("count", "", "Intervals of the run phase without a value."),
    n_effective=("number", "", "Independent samples that the interval counts with."),
    utilization_mean_pct=("number", "pct", "Mean utilization in the run phase."),
    utilization_p95_pct=("number", "pct", "95th percentile of the samples."),
    interval_s=("number", "s", "Median sampling interval."),
)

CHECKS = _schema(
    "checks",
    **_KEYS,
    id=("label", "", "Identifier of the check, for example G1 (docs/validity.md)."),
    title=("text", "", "What is checked."),
    required=("flag", "", "Whether the trial is invalid unless it passes."),
    outcome=("label", "", "pass, fail or undecidable.", OUTCOME),
    value=("number", "", "What was seen, in `unit`."),
    limit=("number", "", "Its limit, in `unit`."),
    unit=("label", "", "Unit of value and limit."),
    n=("count", "", "Samples behind the value."),
    standard_error=("number", "", "Standard error of the value; null if deterministic."),
    reason=("label", "", "Short machine name, used in invalid_reasons."),
    detail=("text", "", "One sentence: what was seen, where, and what to do."),
)

SWEEP_CHECKS = _schema(
    "sweep_checks",
    sweep=_KEYS["sweep"],
    id=("label", "", "Identifier of the check of the whole sweep, for example O1 (docs/validity.md)."),
    title=("text", "", "What is checked."),
    required=("flag", "", "Always false: these checks warn, they invalidate no trial."),
    outcome=("label", "", "pass, fail or undecidable."),
    value=("number", "", "What was seen, in `unit`."),
    limit=("number", "", "Its limit, in `unit`."),
    unit=("label", "", "Unit of value and limit."),
    n=("count", "", "Samples behind the value: trials, or looks (node x load)."),
    standard_error=("number", "", "Standard error of the value; null if deterministic."),
    reason=("label", "", "Short machine name; empty when passed."),
    detail=("text", "", "One sentence: what was seen, and where."),
)

NODES = _schema(
    "nodes",
    **_KEYS,
    node=("label", "", "Name of the node.", TEXT),
    tier=("label", "", "Tier of the node.", TEXT),
    node_type=("label", "", "normal, low_cost or client."),
    role=("label", "", "Software on it, for example mysql."),
    cpu_cores=(
        "number",
        "cores",
        "CPU capacity in force: the limit, else the cores of its own machine; null = neither.",
        POSITIVE,
    ),
    memory_bytes=("count", "bytes", "Memory limit; null = not limited.", POSITIVE),
    disk_bytes_s=("number", "bytes_per_s", "Limit of the disk for reads, and the same for writes; null = not limited."),
    network_bits_s=("number", "bits_per_s", "Limit of the network inwards, and the same outwards; null = not limited."),
)

THINKS = _schema(
    "thinks",
    **_KEYS,
    phase=("label", "", "Phase in which the thinks ended."),
    state=("label", "", "State of the mix after which the user thought."),
    n=("count", "", "Number of thinks."),
    drawn_mean_ms=("number", "ms", "Mean of the drawn think times (biased in a short window, see docs/validity.md)."),
    actual_mean_ms=("number", "ms", "Mean of the actual think times (the same bias)."),
    overshoot_mean_ms=("number", "ms", "Mean of actual - drawn."),
    overshoot_max_ms=("number", "ms", "Largest actual - drawn."),
)

DECISIONS = _schema(
    "decisions",
    sweep=_KEYS["sweep"],
    step=("count", "", "Number of the decision, from 1; a table without rows: the sweep is a grid."),
    users=("count", "users", "Nominal load that was chosen; null: the search stopped."),
    reason=(
        "label",
        "",
        "low, between, beyond the knee, above, plateau; or why it stopped: precise, budget, no room, unlimited.",
    ),
    why=("text", "", "The reason in a sentence."),
    grid_loads=("count", "", "Loads that the full grid has."),
)

CHOICES = _schema(
    "choices",
    **_KEYS,
    node=("label", "", "Middleware node whose trace was read."),
    measure=(
        "label",
        "",
        "pending, with_waiting: reads of the run phase by their regret (the chosen replica's pending statements beyond "
        "the least of all) by begin and end of each statement; with_waiting: those that were chosen and waited for a "
        "connection count too. first_of_least: reads that went to the first of those with the least. ties: reads at "
        "which several had the least. seen, seen_confirmed: numbers that the policy read, and those that begin and end "
        "confirm. never_begun: reads that got no connection. lost: records that are missing in the trace.",
    ),
    regret=("count", "", "Statements; null where the measure has none."),
    n=("count", "", "How many."),
)

FROM_ABOVE = _schema(
    "from_above",
    **_as_in("trials", "sweep trial"),
    users=("count", "users", "Nominal number of users in the run.", A_COUNT),
    above=("count", "users", "Most nominal users before the run; those beyond `users` left in the ramp-up.", A_COUNT),
    users_real=("count", "users", "Users that were really emulated in the run: nominal users x scale.", ONE_OR_MORE),
    above_real=("count", "users", "The most before the run, as really emulated.", ONE_OR_MORE),
    **_as_in("trials", "rep valid invalid_reasons state failure attempt attempts run_start_s run_end_s"),
    **_as_in("trials", "throughput_per_s throughput_low_per_s throughput_high_per_s goodput_per_s"),
    **_as_in("trials", "response_time_mean_ms response_time_p95_ms errors interactions pending"),
    late_throughput_per_s=("number", "1/s", "Throughput in the second half of the run.", NOT_NEGATIVE),
    late_throughput_high_per_s=("number", "1/s", "Upper end of its 95 % interval.", NOT_NEGATIVE),
)
"""A table of their own, so that nothing that reads `trials` pools the two kinds."""

TABLES: dict[str, pa.Schema] = {
    "trials": TRIALS,
    "interactions": INTERACTIONS,
    "samples": SAMPLES,
    "verdicts": VERDICTS,
    "saturation": SATURATION,
    "checks": CHECKS,
    "sweep_checks": SWEEP_CHECKS,
    "nodes": NODES,
    "thinks": THINKS,
    "decisions": DECISIONS,
    "choices": CHOICES,
    "from_above": FROM_ABOVE,
}

NEEDED: dict[str, list[str]] = {
    "trials": ["sweep", "trial", "topology", "users", "users_real", "scale", "valid", "run_start_s", "run_end_s",
               "throughput_per_s", "response_time_mean_ms"],
    "interactions": ["sweep", "trial", "t_s", "phase", "interaction", "response_time_ms", "ok"],
    "samples": ["sweep", "trial", "t_s", "phase", "node", "tier", "resource", "metric", "value", "source"],
    "verdicts": ["sweep", "trial", "scope", "verdict"],
    "saturation": ["sweep", "trial", "users", "node", "tier", "resource", "source", "threshold_pct", "saturation"],
    "nodes": ["sweep", "trial", "node", "tier"],
}  # fmt: skip
"""Columns that a stored table must have; others came later, and are null where the file has none."""

LATER_TABLES = {"decisions", "choices", "sweep_checks", "from_above"}
"""Tables that older stores lack; they are empty there."""

SORT_BY: dict[str, list[str]] = {
    "trials": ["users", "rep", "trial"],
    "interactions": ["trial", "t_s", "client", "interaction"],
    "samples": ["resource", "metric", "node", "item", "source", "trial", "t_s"],
    "verdicts": ["scope", "users", "trial", "tier", "resource"],
    "saturation": ["users", "trial", "tier", "node", "resource", "item", "threshold_pct"],
    "checks": ["trial", "id"],
    "sweep_checks": ["id"],
    "nodes": ["trial", "node"],
    "thinks": ["trial", "phase", "state"],
    "decisions": ["step"],
    "choices": ["trial", "node", "measure", "regret"],
    "from_above": ["above", "users", "rep", "trial"],
}
"""Order of the rows: by metric first, which compresses two to five times better than by time."""


def kinds(table: str) -> dict[str, str]:
    """Column -> its type in a CSV file (parsers/csvfile.py)."""
    names = {pa.float64(): "number", pa.int64(): "whole", pa.bool_(): "flag"}
    return {field.name: names.get(field.type, "text") for field in TABLES[table]}
