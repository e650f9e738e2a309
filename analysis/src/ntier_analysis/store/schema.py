"""The tables of the store: one definition and one unit per column.

Layout: `<store>/<table>/<sweep>.parquet`, zstd, one file per table and sweep (many trials each). Keys are
`sweep, trial`. Times are UTC epoch seconds on the controller's clock. A missing value is null, never 0.
"""

from __future__ import annotations

import pyarrow as pa

STORE_SCHEMA = 1
"""Written into each file's metadata as `ntier_store_schema`; a reader refuses a higher one."""

PHASES = ("ramp_up", "run", "ramp_down", "outside")
"""Values of `phase`; `outside` = before the first or after the last phase."""

_TYPES = {
    "text": pa.string(),
    "number": pa.float64(),
    "count": pa.int64(),
    "flag": pa.bool_(),
    "label": pa.dictionary(pa.int32(), pa.string()),
}


def _schema(**columns: tuple[str, str, str]) -> pa.Schema:
    """name=(type, unit, definition); the unit is empty where a column has none."""
    fields = [
        pa.field(name, _TYPES[kind], metadata={"unit": unit, "definition": definition})
        for name, (kind, unit, definition) in columns.items()
    ]
    return pa.schema(fields, metadata={"ntier_store_schema": str(STORE_SCHEMA)})


_KEYS = {
    "sweep": ("label", "", "One topology, mix and middleware over a range of users."),
    "trial": ("label", "", "Name of the trial in the sweep, for example u08000.r01."),
}

TRIALS = _schema(
    **_KEYS,
    topology=("label", "", "Topology in W/A/C/D notation, for example 1/2/1/9M."),
    mix=("label", "", "Mix of interactions, for example browse_only."),
    middleware=("label", "", "Middleware between the app and db tiers."),
    tiers=("text", "", "Names of the tiers from the client inwards, joined by commas; null: web,app,middleware,db."),
    users=("count", "users", "Nominal number of concurrent users."),
    users_real=("count", "users", "Users that were really emulated: nominal users x scale."),
    scale=("number", "", "Scale of the model: node capacity and users are multiplied by it."),
    rep=("count", "", "Number of the repetition, from 1."),
    valid=("flag", "", "No required validity check failed or was undecidable, and the trial was collected."),
    invalid_reasons=("text", "", "Reasons of the failed required checks, joined by ', '; empty if valid."),
    run_start_s=("number", "s", "Start of the run phase."),
    run_end_s=("number", "s", "End of the run phase (exclusive)."),
    throughput_per_s=("number", "1/s", "Interactions completed without error per second of the run phase."),
    goodput_per_s=("number", "1/s", "Those of them whose response time was within the objective (slo_ms)."),
    response_time_mean_ms=("number", "ms", "Mean response time of the successes completed in the run phase."),
    response_time_p50_ms=("number", "ms", "Median of the same."),
    response_time_p95_ms=("number", "ms", "95th percentile of the same; null if too few."),
    response_time_p99_ms=("number", "ms", "99th percentile of the same; null if too few (n < 1,000)."),
    errors=("count", "", "Interactions completed in the run phase that failed."),
    # beyond the contract
    throughput_low_per_s=("number", "1/s", "Lower end of the 95 % interval of the throughput (10 batch means)."),
    throughput_high_per_s=("number", "1/s", "Upper end of the same."),
    interactions=("count", "", "Successes completed in the run phase."),
    pending=("count", "", "Interactions begun before the end of the run phase and not completed in it."),
    idc=("number", "", "Index of dispersion of the 1-s counts of completions: variance / mean."),
    think_time_s=("number", "s", "Mean of the distribution that think times are drawn from."),
    think_measured_s=("number", "s", "Measured think seconds in the run phase per completed interaction."),
    slo_ms=("number", "ms", "Response-time objective of the goodput; null if none was set."),
    seed=("count", "", "Seed of the random draws."),
    attempt=("count", "", "Which attempt of the trial this is; earlier ones are kept in raw."),
    attempts=("count", "", "Attempts of this trial that raw holds."),
    state=("label", "", "planned, running, collected or failed."),
    failure=("text", "", "Why the trial failed; empty if it did not."),
    data_profile=("label", "", "Size of the data set."),
    target=("label", "", "Where the nodes ran, for example local."),
    ramp_up_start_s=("number", "s", "Start of the ramp-up phase."),
    ramp_down_end_s=("number", "s", "End of the ramp-down phase."),
    git_commit=("text", "", "Commit of the program that ran the trial."),
    policy=("label", "", "How the middleware balances reads, for example least_pending; null if unknown."),
    tie=("label", "", "Which of several least-loaded replicas least_pending takes: first or random."),
)

INTERACTIONS = _schema(
    **_KEYS,
    t_s=("number", "s", "Completion of the interaction: its start + response time."),
    phase=("label", "", "Phase in which it completed: ramp_up, run, ramp_down or outside."),
    interaction=("label", "", "Name of the interaction (state of the mix)."),
    response_time_ms=("number", "ms", "From the first byte sent to the last byte of page and images received."),
    ok=("flag", "", "Whether it succeeded (HTTP status < 400 and no ERROR page)."),
    bytes=("count", "bytes", "Received bytes."),
    client=("label", "", "Client node that ran it."),
)

SAMPLES = _schema(
    **_KEYS,
    t_s=("number", "s", "End of the sampling interval (moment of the reading for a gauge)."),
    phase=("label", "", "Phase in which t_s falls: ramp_up, run, ramp_down or outside."),
    node=("label", "", "Name of the node, or host."),
    tier=("label", "", "web, app, middleware, db, client or host."),
    resource=("label", "", "cpu, disk, network, memory, pool, lock, queue, query or jvm."),
    metric=("label", "", "What was measured, unit as suffix; utilization_pct for what saturates."),
    value=("number", "", "The value, in `unit`; null in a gap or where a counter ran backwards."),
    unit=("label", "", "Unit of the value: pct, bytes, per_s, ..."),
    source=("label", "", "Collector it came from: cgroup, procstat, sysstat, host_stat, pressure, mysql_status, ..."),
    item=("label", "", "Part of the resource: device, interface, pool or replica; empty = the whole."),
    interval_s=("number", "s", "Length of the sampling interval; null for a gauge."),
)

VERDICTS = _schema(
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
    **_KEYS,
    users=("count", "users", "Nominal users of the trial."),
    node=("label", "", "Name of the node, or host."),
    tier=("label", "", "Tier of the node."),
    resource=("label", "", "cpu, disk, network, pool, ..."),
    item=("label", "", "Part of the resource; empty = the whole."),
    source=("label", "", "Collector it came from."),
    threshold_pct=("number", "pct", "Threshold of utilization: 90, 95 or 99."),
    saturation=("number", "", "Share of the run phase's samples at or above the threshold, 0..1."),
    saturation_low=("number", "", "Lower end of its 95 % interval."),
    saturation_high=("number", "", "Upper end of the same."),
    n=("count", "", "Samples in the run phase."),
    n_missing=("count", "", "Intervals of the run phase without a value."),
    n_effective=("number", "", "Independent samples that the interval counts with."),
    utilization_mean_pct=("number", "pct", "Mean utilization in the run phase."),
    utilization_p95_pct=("number", "pct", "95th percentile of the samples."),
    interval_s=("number", "s", "Median sampling interval."),
)

CHECKS = _schema(
    **_KEYS,
    id=("label", "", "Identifier of the check, for example G1 (docs/validity.md)."),
    title=("text", "", "What is checked."),
    required=("flag", "", "Whether the trial is invalid unless it passes."),
    outcome=("label", "", "pass, fail or undecidable."),
    value=("number", "", "What was seen, in `unit`."),
    limit=("number", "", "Its limit, in `unit`."),
    unit=("label", "", "Unit of value and limit."),
    n=("count", "", "Samples behind the value."),
    standard_error=("number", "", "Standard error of the value; null if deterministic."),
    reason=("label", "", "Short machine name, used in invalid_reasons."),
    detail=("text", "", "One sentence: what was seen, where, and what to do."),
)

SWEEP_CHECKS = _schema(
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
    **_KEYS,
    node=("label", "", "Name of the node."),
    tier=("label", "", "Tier of the node."),
    node_type=("label", "", "normal, low_cost or client."),
    role=("label", "", "Software on it, for example mysql."),
    cpu_cores=("number", "cores", "CPU capacity in force during the run; null = not limited."),
    memory_bytes=("count", "bytes", "Memory limit; null = not limited."),
    disk_bytes_s=("number", "bytes_per_s", "What the disk reads, and as much writes, per second; null = not limited."),
    network_bits_s=("number", "bits_per_s", "What goes in, and as much out, per second; null = not limited."),
)

THINKS = _schema(
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
    sweep=_KEYS["sweep"],
    step=("count", "", "Number of the decision, from 1; a table without rows: the sweep is a grid."),
    users=("count", "users", "Nominal load that was chosen; null: the search stopped."),
    reason=(
        "label",
        "",
        "low, beyond the knee, above, plateau; or why it stopped: precise, budget, no room, unlimited.",
    ),
    why=("text", "", "The reason in a sentence."),
    grid_loads=("count", "", "Loads that the full grid has."),
)

CHOICES = _schema(
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
}

LATER_TABLES = {"decisions", "choices", "sweep_checks"}
"""Those that older stores lack: empty there."""

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
}
"""Order of the rows: by metric first, which compresses two to five times better than by time."""
