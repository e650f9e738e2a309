"""`ntier-analysis`: raw trials -> store -> verdict -> report. Heavy imports happen inside the commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.errors import DataError, one_line
from ntier_analysis.wording import counted

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _opened(store: str | Path) -> Path:
    """A store, wherever it is, as a folder of this machine."""
    from ntier_analysis.places import opened

    try:
        return opened(store)
    except DataError as error:  # a ValueError, which Typer would tell of as a wrong word on the command line
        print(f"error: {one_line(error)}", file=sys.stderr)
        raise typer.Exit(2) from error


Store = Annotated[
    Path,
    typer.Option("--store", parser=_opened, metavar="DIR|URL", help="Folder of the Parquet store, or a URL of fsspec."),
]
StoreAndSweeps = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[STORE] [SWEEP]...", help="Names of sweeps; before them the store, unless --store is given."
    ),
]
Anywhere = Annotated[
    str, typer.Option("--store", metavar="DIR|URL", help="Folder of the Parquet store, or a URL of fsspec.")
]
"""For commands that hand the store to other processes, which open it themselves."""
PlacedAnywhere = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR|URL",
        help="Folder of the Parquet store, or a URL of fsspec.",
        show_default="results/store",
    ),
]
"""For commands whose first argument is the store unless this option is given."""
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes that do sweeps at the same time.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="Dask instead: tcp://HOST:PORT of a scheduler, or local:N for N processes."),
]
Sweeps = Annotated[list[str] | None, typer.Argument(help="Names of sweeps; default: all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
STORE = Path("results/store")


def _version(asked: bool) -> None:
    if asked:
        from ntier_analysis.verdict.stored import analysis_version

        print(f"ntier-analysis {analysis_version()}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print version and digest of the verdict's rules."
        ),
    ] = False,
) -> None:
    """Finds the bottleneck of a multi-tier system from measurements."""


def _placed(option: str | None, arguments: list[str] | None) -> tuple[str, list[str]]:
    """The store and the other arguments: without the option --store, the first argument is the store."""
    if option is not None:
        return option, arguments or []
    first, *others = arguments or [str(STORE)]
    return first, others


@app.command()
def validate(trial: Annotated[Path, typer.Argument(help="Folder of a raw trial.")], json: AsJson = False) -> None:
    """Checks whether a raw trial is valid.

    docs/validity.md lists the checks. The exit code is 0 also for an invalid trial."""
    from ntier_analysis.trial import RawTrial
    from ntier_analysis.validity.registry import validate as run

    checks = run(RawTrial(trial))
    if json:
        print(checks.model_dump_json(indent=1))
        return
    from ntier_analysis.texts import checks_text

    print(checks_text(checks))


@app.command()
def ingest(
    sweeps: Sweeps = None,
    raw: Annotated[str, typer.Option(help="Folder of the raw results, or a URL of fsspec.")] = "results/raw",
    store: Anywhere = str(STORE),
    force: Annotated[bool, typer.Option("--force", help="Also rebuild sweeps that did not change.")] = False,
    revalidate: Annotated[
        bool,
        typer.Option("--revalidate", help="Run the validity checks again, even if the manifest has their outcome."),
    ] = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Reads raw trials into the store.

    Exit code 1 if a file could not be read; the other trials are stored."""
    from functools import partial

    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import ingest as run
    from ntier_analysis.many import names_of
    from ntier_analysis.places import Place

    source, target = (Place.of(text, absolute=cluster is not None) for text in (raw, store))
    if target.local is not None:
        check_folder(Path(store), "--store")
    problems = 0
    names = names_of(source, sweeps or [])
    work = partial(run, raw=source, store=target, force=force, revalidate=revalidate)
    for done in shown(spread(work, names, jobs=jobs, cluster=cluster), len(names), "ingest"):
        same = "unchanged, judged again by newer rules" if done.judged_again else "unchanged"
        state = same if done.unchanged else f"{counted(done.trials, 'trial')}, {done.valid} valid"
        print(f"{done.sweep}: {state}")
        for problem in done.problems:
            print(f"error: {problem}", file=sys.stderr)
        problems += len(done.problems)
    if problems:
        raise typer.Exit(1)


@app.command()
def verdict(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    sweep: Annotated[list[str] | None, typer.Option(help="Only this sweep (may be repeated).")] = None,
    json: AsJson = False,
) -> None:
    """Says what limits each sweep, how sure that is, and why."""
    from ntier_analysis.places import opened
    from ntier_analysis.verdict.store import verdicts

    place, names = _placed(store, arguments)
    judged = verdicts(opened(place), names + (sweep or []))
    if json:
        import orjson

        from ntier_analysis.verdict.tables import as_json

        document = {"sweeps": [as_json(v) for v in judged]}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    from ntier_analysis.texts import verdict_text

    print("\n\n".join(verdict_text(v) for v in judged) or "the store holds no sweep")


@app.command()
def judge(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Judges stored sweeps again by this program's rules.

    Writes the verdicts into the store."""
    from functools import partial

    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import judge as run
    from ntier_analysis.many import stored_names
    from ntier_analysis.places import Place

    text, asked = _placed(store, arguments)
    place = Place.of(text, absolute=cluster is not None)
    names = stored_names(place, asked)
    for done in shown(spread(partial(run, store=place), names, jobs=jobs, cluster=cluster), len(names), "judge"):
        print(f"{done.sweep}: {done.verdict}, judged by the rules of {done.rules} (before: {done.before})")


@app.command("densities")
def all_densities(
    arguments: StoreAndSweeps = None,
    store: PlacedAnywhere = None,
    out: Annotated[str, typer.Option(help="Folder for a Parquet file per sweep, or a URL of fsspec.")] = "densities",
    bandwidth: Annotated[float, typer.Option(min=0.5, max=100, help="Of the kernel, in percentage points.")] = 2.0,
    jobs: Jobs = 1,
    cluster: Cluster = None,
) -> None:
    """Writes the density of every utilization of every trial: for display, a verdict never rests on them.

    A row has the keys of one resource of one node, and 401 points from 0 to 100 %."""
    from functools import partial

    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.jobs import shown, spread
    from ntier_analysis.many import density as run
    from ntier_analysis.many import stored_names
    from ntier_analysis.places import Place

    text, asked = _placed(store, arguments)
    place, target = (Place.of(where, absolute=cluster is not None) for where in (text, out))
    if target.local is not None:
        check_folder(Path(out), "--out")
    names = stored_names(place, asked)
    work = partial(run, store=place, out=target, bandwidth_pct=bandwidth)
    made = shown(spread(work, names, jobs=jobs, cluster=cluster), len(names), "densities")
    for name, number in zip(names, made, strict=True):
        print(f"{name}: {counted(number, 'density')}")


@app.command()
def search(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep; it need not be in the store yet.")],
    users: Annotated[str, typer.Option(help="Nominal loads of the full grid, with commas; they bound the search.")],
    store: Store = STORE,
    precision: Annotated[
        float, typer.Option(help="Relative half-width that the maximum's interval should reach.")
    ] = 0.05,
    most: Annotated[int, typer.Option(help="Largest number of loads to try.")] = 6,
    without: Annotated[
        list[str] | None, typer.Option(help="Trial to ignore because it is not finished (may be repeated).")
    ] = None,
    json: AsJson = False,
) -> None:
    """Says which load a capacity search runs next, or why it stops."""
    from dataclasses import asdict

    from ntier_analysis.verdict.search import Goal
    from ntier_analysis.verdict.store import searched

    if not re.fullmatch(r"0*[1-9][0-9]{0,8}(,0*[1-9][0-9]{0,8})*", users, re.ASCII):
        raise DataError(f"users: {users!r}: expected whole numbers above 0 with commas (1000,2000)")
    goal = Goal(tuple(sorted({int(u) for u in users.split(",")})), precision, most)
    step = searched(store, sweep, goal, without or [])
    if json:
        import orjson

        print(orjson.dumps(asdict(step)).decode())
        return
    print(f"{'stop' if step.users is None else step.users} ({step.reason}): {step.why}")


@app.command()
def foresee(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep; it need not be in the store yet.")],
    topology: Annotated[str, typer.Option(help="Its topology; trials of its other sweeps count, too.")],
    scale: Annotated[float, typer.Option(help="Its scale.")],
    run_s: Annotated[float, typer.Option(help="Length of its runs, s.", min=1)],
    store: Store = STORE,
    most: Annotated[int, typer.Option(help="Largest number of trials beyond the knee.", min=2, max=1000)] = 30,
    json: AsJson = False,
) -> None:
    """Says how narrow the maximum's interval will be.

    Uses the trials beyond the knee that the store holds of this topology."""
    import orjson

    from ntier_analysis.verdict.foresight import as_json, foresight

    told = as_json(foresight(store, sweep, topology, scale), run_s, most)
    if json:
        print(orjson.dumps(told, option=orjson.OPT_NON_STR_KEYS).decode())
        return
    if told["source"] is None:
        print("not known: the store has no two valid trials beyond the knee of this topology")
        return
    print(f"from {counted(told['trials_n'], 'trial')} of {told['source']}")
    for n, (middle, low, high) in told["half_widths"].items():
        print(f"{n:4d} trials  +-{100 * middle:.1f} %  (8 times in 10: {100 * low:.1f} to {100 * high:.1f} %)")


@app.command()
def demands(sweeps: Sweeps = None, store: Store = STORE, json: AsJson = False) -> None:
    """Prints the CPU that an interaction needs on each node, in ms.

    Estimated by the utilization law over the valid loads of each sweep."""
    import pandas as pd

    from ntier_analysis.report.data import read_sweep
    from ntier_analysis.report.tables import demands as of_sweep
    from ntier_analysis.store.tables import sweeps as stored

    parts = [of_sweep(read_sweep(store, name)).assign(sweep=name) for name in sweeps or stored(store)]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if json:
        print(frame.to_json(orient="records", indent=1))
        return
    print("the store holds no sweep" if frame.empty else frame.to_string(index=False, float_format="{:.3g}".format))


@app.command()
def chains(sweeps: Sweeps = None, store: Store = STORE, json: AsJson = False) -> None:
    """Finds what rises and falls with each database's disk.

    Looks at queue, executed statements and CPU, second by second."""
    from ntier_analysis.store.tables import sweeps as stored
    from ntier_analysis.verdict.store import chains as of_sweep

    chains_of = {name: of_sweep(store, name) for name in sweeps or stored(store)}
    if json:
        import orjson

        print(orjson.dumps(chains_of, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    for sweep, trials in chains_of.items():
        lines = [f"{sweep}, {trial}: {chain.text}" for trial, linked in trials.items() for chain in linked]
        print("\n".join(lines) or f"{sweep}: nothing moves with the disk of a database")


Mix = Annotated[str | None, typer.Option(help="Only sweeps with this mix.")]
PricesFile = Annotated[Path | None, typer.Option(help="JSON: prices per hour of the node types; default: an example.")]
Slo = Annotated[float | None, typer.Option(help="Objective of the 95th percentile, ms; default: the mix's own.")]


@app.command("map")
def map_(
    sweeps: Sweeps = None,
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the page.")] = Path("results/map"),
    mix: Mix = None,
    prices: PricesFile = None,
    slo_ms: Slo = None,
    join_names: Annotated[
        bool, typer.Option("--join-names", help="Put sweeps with different names into one map.")
    ] = False,
) -> None:
    """Writes a page of maps over topologies.

    It shows bottlenecks, throughput surfaces, ratios, scale-out and costs (docs/maps.md)."""
    from ntier_analysis.campaign.costs import read_prices
    from ntier_analysis.campaign.store import read_campaign
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.report.maps import write_map

    check_folder(out, "--out")
    table = read_prices(prices)
    print(write_map(read_campaign(store, sweeps, mix, join_names=join_names), table, slo_ms, out))


@app.command()
def cheapest(
    throughput: Annotated[float, typer.Option(help="Nominal interactions per second that are needed.")],
    store: Store = STORE,
    slo_ms: Slo = None,
    mix: Mix = None,
    prices: PricesFile = None,
    json: AsJson = False,
) -> None:
    """Finds the cheapest measured topology for a throughput.

    Exit code 3 if no topology is sure to carry it within the objective."""
    from ntier_analysis.campaign.costs import answer, read_prices
    from ntier_analysis.campaign.store import read_campaign

    table = read_prices(prices)
    answered = answer(read_campaign(store, None, mix), table, throughput, slo_ms)
    print(answered.json() if json else answered.text())
    if answered.best is None:
        raise typer.Exit(3)


@app.command()
def predict(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    topo: Annotated[str | None, typer.Option(help="Predict this topology instead, for example 1/1/1/2M.")] = None,
    cores: Annotated[
        list[str] | None, typer.Option(help="TYPE=CORES: CPU of a node type that no sweep in the store has.")
    ] = None,
    jmt: Annotated[Path | None, typer.Option(help="Also write the model for JMVA to this file.")] = None,
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Predicts throughput from the sweep's demands.

    Solves a closed model of the demands and shows it beside the measurement, or for another topology (--topo)."""
    from ntier_analysis.prediction.store import predicted, text

    document = predicted(store, sweep, topo, cores or [], jmt)
    if json:
        import orjson

        print(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    print(text(document))


@app.command("import")
def import_(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder with trials.csv, samples.csv and, if you have it, interactions.csv.")
    ] = None,
    jtl: Annotated[list[Path] | None, typer.Option(help="JMeter's CSV JTL of a run; one per client.")] = None,
    sa: Annotated[
        list[str] | None, typer.Option(metavar="NODE=FILE[:TIER]", help="A node's sysstat file (binary or JSON).")
    ] = None,
    k6: Annotated[list[Path] | None, typer.Option(help="k6's points, CSV or JSON lines; one per client.")] = None,
    locust: Annotated[
        list[Path] | None, typer.Option(help="Locust's *_stats_history.csv, a table with a line per request, or both.")
    ] = None,
    gatling: Annotated[
        list[Path] | None, typer.Option(help="Gatling's simulation.log as text; one per client.")
    ] = None,
    prometheus: Annotated[
        str,
        typer.Option(metavar="URL|FILE", help="Samples of the nodes: a Prometheus server, or a file saved from it."),
    ] = "",
    node: Annotated[
        list[str] | None,
        typer.Option(metavar="NODE=INSTANCE[:TIER]", help="Node to which an instance of Prometheus belongs."),
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="YAML file that maps metrics to resources; default: that of the usual exporters."),
    ] = None,
    loads: Annotated[
        Path | None,
        typer.Option(help="CSV with a line per trial: start, end, users; default: plateaus of the users."),
    ] = None,
    load_model: Annotated[str, typer.Option(help="closed (users), open (arrivals at a rate) or work.")] = "",
    runs: Annotated[Path | None, typer.Option(help="CSV with a line per run: jtl, sa, users, ...")] = None,
    users: Annotated[int | None, typer.Option(min=1, help="Concurrent users; default: threads in the JTL.")] = None,
    topology: Annotated[str, typer.Option(help="Nodes per tier, for example 1/2/1/2M.")] = "",
    sweep: Annotated[str, typer.Option(help="Sweep that the run belongs to.")] = "",
    rep: Annotated[int, typer.Option(min=1, help="Repetition of this load.")] = 1,
    ramp_up: Annotated[
        float | None, typer.Option(min=0, help="Seconds to leave out at the start; default: until all threads run.")
    ] = None,
    ramp_down: Annotated[float | None, typer.Option(min=0, help="Seconds to leave out at the end.")] = None,
    think_time: Annotated[float | None, typer.Option(min=0, help="Mean think time in s; default 7.")] = None,
    slo_ms: Annotated[float | None, typer.Option(min=0, help="Response-time objective of the goodput, ms.")] = None,
    clock_offset: Annotated[
        list[str] | None, typer.Option(metavar="NODE=SECONDS", help="How far the node's clock is ahead of JMeter's.")
    ] = None,
    stamp: Annotated[str, typer.Option(help="What timeStamp means: start or end of a sample.")] = "start",
    containers: Annotated[
        bool,
        typer.Option("--containers", help="The nodes are containers: their sysstat shows the host's CPU and disk."),
    ] = False,
    tiers: Annotated[str, typer.Option(help="Tiers from the client inwards: frontend,backend,postgres.")] = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace runs of the same name that have other contents.")
    ] = False,
    store: Store = STORE,
) -> None:
    """Adds measurements of another system to the store.

    Takes CSV tables, or files of JMeter, k6, Locust or Gatling with those of sysstat or Prometheus
    (docs/how-to/imports.md).

    ntier-analysis import --jtl run.jtl --sa web1=web1.sa --sa db1=db1.sa --topology 1/1/1/1M --users 400"""
    from ntier_analysis.importing.command import run

    options = {
        "jtl": jtl or [], "k6": k6 or [], "locust": locust or [], "gatling": gatling or [], "sa": sa or [],
        "prometheus": prometheus, "node": node or [], "mapping": mapping, "loads": loads, "load_model": load_model,
        "users": users, "topology": topology, "sweep": sweep, "rep": rep,
        "ramp_up_s": ramp_up, "ramp_down_s": ramp_down, "think_time_s": think_time, "slo_ms": slo_ms, "stamp": stamp,
        "containers": containers, "clock_offset": clock_offset or [], "tiers": tiers, "replace": replace,
    }  # fmt: skip
    for line in run(folder, runs, options, store):
        print(line)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(help="SWEEP of the store, or STORE:SWEEP.")],
    b: Annotated[str, typer.Argument(help="The other sweep, given like A. Ratios are B/A.")],
    store: Store = STORE,
    margin: Annotated[float, typer.Option(help="Difference in per cent that still counts as the same.")] = 5.0,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare even if scale, data, mix or think time differ.")
    ] = False,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out the single loads.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the figure and the table.")] = None,
    json: AsJson = False,
) -> None:
    """Compares two sweeps: same, different or undecided.

    Prints ratios with 95 % intervals."""
    from ntier_analysis.comparison.command import run

    print(run(a, b, store, margin / 100, anyway=anyway, loads=not brief, out=out, json=json))


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL. Each table of the store is a view of the same name.")],
    store: Store = STORE,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    json: AsJson = False,
) -> None:
    """Runs SQL (DuckDB) on the store, read-only.

    ntier-analysis sql "SELECT sweep, count(*) FROM trials WHERE valid GROUP BY ALL" """
    from ntier_analysis.store.query import formatted, run

    print(formatted(run(store, query), "csv" if csv else "json" if json else "table"), end="")


store_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(store_app, name="store", help="Contents and size of a store.")


@store_app.command()
def info(store: Store = STORE, json: AsJson = False) -> None:
    """Lists tables, files, rows, bytes, and the schema's version.

    Reads the files' footers only. Exit code 1 if a file could not be read."""
    from ntier_analysis.store.info import examine

    found = examine(store)
    if json:
        import orjson

        print(orjson.dumps(found.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        print(found.text())
    for problem in found.unreadable:
        print(f"error: {problem}", file=sys.stderr)
    if found.unreadable:
        raise typer.Exit(1)


@store_app.command()
def migrate(store: Store = STORE) -> None:
    """Writes files of earlier versions as this version does: the same tables, in fewer bytes.

    Earlier versions are read as they are, too."""
    from ntier_analysis.jobs import shown
    from ntier_analysis.places import as_given
    from ntier_analysis.store.tables import locked, sweeps
    from ntier_analysis.store.tables import migrate as run

    names = sweeps(store)
    with locked(store):
        files = sum(shown((run(store, name) for name in names), len(names), "migrate"))
    print(f"{as_given(store)}: {counted(files, 'file')} of {counted(len(names), 'sweep')} written anew")


@app.command()
def check(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STORE] [EXPECTED]",
            help="EXPECTED: YAML or JSON, {sweep: [expectation, ...]}; before it the store, unless --store is given.",
        ),
    ] = None,
    store: PlacedAnywhere = None,
    expect: Annotated[list[str] | None, typer.Option(help="An expectation; may be repeated.")] = None,
    sweep: Annotated[list[str] | None, typer.Option(help="Only this sweep (may be repeated).")] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="Do not fail if the data cannot decide.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Checks whether expectations hold: a gate for CI.

    Exit code 3 if an expectation does not hold, or cannot be decided.

    ntier-analysis check --store results/store --expect "max_throughput >= 100" --expect "verdict == single db cpu" """
    from ntier_analysis.expectation.command import run
    from ntier_analysis.places import opened

    place, files = _placed(store, arguments)
    if len(files) > 1:
        raise DataError(f"check: one file of expectations is allowed, there are: {', '.join(files)}")
    expected = Path(files[0]) if files else None
    text, failed = run(opened(place), expect or [], expected, sweep, allow_undecided=allow_undecided, json=json)
    print(text)
    if failed:
        print(f"{counted(failed, 'expectation')} not met", file=sys.stderr)
        raise typer.Exit(3)


@app.command()
def claims(
    file: Annotated[Path, typer.Argument(help="YAML: {claim: {says, place, paper, sweep, expect}}.")],
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Lists which claims of a paper hold in a store.

    ntier-analysis claims studies/two-phase-commit/claims.yaml --store results/store"""
    from dataclasses import asdict

    import orjson

    from ntier_analysis.expectation.claims import judge, read, table

    judged = judge(read(file), store)
    print(orjson.dumps([asdict(c) for c in judged], option=orjson.OPT_INDENT_2).decode() if json else table(judged))


@app.command()
def export(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    openmetrics: Annotated[bool, typer.Option("--openmetrics", help="Verdict and key figures as OpenMetrics.")] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Checks and expectations as JUnit's test cases.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The whole sweep; docs/schema/export.schema.json.")] = False,
    out: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    expect: Annotated[
        list[str] | None, typer.Option(help="With --junit: an expectation, as of check; may be repeated.")
    ] = None,
    expected: Annotated[Path | None, typer.Option(help="With --junit: a file of expectations, as of check.")] = None,
    allow_undecided: Annotated[
        bool, typer.Option("--allow-undecided", help="With --junit: skip expectations that the data cannot decide.")
    ] = False,
    store: Store = STORE,
) -> None:
    """Writes a sweep for other programs.

    ntier-analysis export SWEEP --junit --expect "max_throughput >= 100" --out ntier.xml"""
    from ntier_analysis.exporting.command import run

    kinds = {"openmetrics": openmetrics, "junit": junit, "json": json}
    print(
        run(store, sweep, [k for k, v in kinds.items() if v], out, expect or [], expected, allow=allow_undecided),
        end="",
    )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("ntier-demo"),
    all_: Annotated[bool, typer.Option("--all", help="Reports of all three sweeps.")] = False,
) -> None:
    """Writes the report of the measured sweep in the package.

    Needs no root, no nodes, no network."""
    from ntier_analysis.demo.command import run

    run(out, everything=all_)


@app.command()
def report(
    sweeps: Sweeps = None,
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results/reports"),
    force: Annotated[bool, typer.Option("--force", help="Also write reports that did not change.")] = False,
    json: AsJson = False,
) -> None:
    """Writes the report of each sweep and prints a summary.

    HTML, Markdown, JSON, figures and tables.

    A report whose data and program did not change is left as it is."""
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.store.tables import sweeps as stored

    check_folder(out, "--out")
    names = stored(store)
    unknown = [s for s in sweeps or [] if s not in names]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(names) or 'none'}")
    from ntier_analysis.report import kept_report, summary, write_report

    summaries = []
    for number, name in enumerate(sweeps or names, start=1):
        page = None if force else kept_report(store, name, out)
        state = "..." if page is None else "unchanged"
        print(f"{name} ({number} of {len(sweeps or names)}) {state}", file=sys.stderr)
        summaries.append(summary.read(page or write_report(store, name, out)))
        if not json:
            print(summary.text(summaries[-1]) + "\n" * (number < len(sweeps or names)), flush=True)
    if json:
        print(summary.to_json({"sweeps": summaries}))


@app.command()
def figure(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    kind: Annotated[
        str, typer.Option(help="density-surface, density-map, course, timeline, load-throughput, percentiles or tiers.")
    ],
    out: Annotated[Path, typer.Option(help="File to write: *.png, *.pdf or *.svg.")],
    node: Annotated[
        list[str] | None, typer.Option(help="Node; may be repeated with the kinds course and load-throughput.")
    ] = None,
    resource: Annotated[str, typer.Option(help="With densities: cpu, disk, network, pool, ...")] = "cpu",
    item: Annotated[str | None, typer.Option(help="With densities: the device, interface or pool.")] = None,
    trial: Annotated[str, typer.Option(help="Trial to draw; default: the one nearest to the knee.")] = "",
    from_: Annotated[float | None, typer.Option("--from", min=0, help="With course: first second of the run.")] = None,
    to: Annotated[float | None, typer.Option(min=0, help="With course: last second of the run.")] = None,
    store: Store = STORE,
) -> None:
    """Draws one figure of a sweep.

    Any resource of any node, any trial, any part of its run.

    ntier-analysis figure SWEEP --kind density-surface --node db1 --resource disk --out disk.png"""
    from ntier_analysis.ondemand.command import Request, run

    request = Request(kind, tuple(node or ()), resource, item, trial, (from_, to))
    print(run(store, sweep, request, out))


@app.command()
def slow(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    trial: Annotated[str, typer.Option(help="Trial; default: the one nearest to the knee.")] = "",
    top: Annotated[int, typer.Option(min=1, max=1000, help="Number of interactions.")] = 10,
    raw: Annotated[
        str | None,
        typer.Option(help="Folder of the raw results, or a URL of fsspec.", show_default="raw, beside the store"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also draw them: *.png, *.pdf or *.svg.")] = None,
    traced: Annotated[bool, typer.Option("--traced", help="Only traced interactions, by tier.")] = False,
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """Lists the slowest interactions of a trial.

    Shows the parts of their time, and which CPUs were full meanwhile."""
    from ntier_analysis.ondemand.slow import run
    from ntier_analysis.places import opened_raw

    source = None if raw is None else opened_raw(raw, sweep)
    print(run(store, sweep, trial, top, source, out, json=json, traced=traced))


@app.command()
def policies(
    sweeps: Annotated[list[str], typer.Argument(help="Names of sweeps that differ in their balancing policy.")],
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the comparison.")] = Path("results/reports/policies"),
) -> None:
    """Compares balancing policies.

    Shows shares of the replicas, throughput and response time, and the regret if there is a trace."""
    from ntier_analysis.contracts.files import check_folder
    from ntier_analysis.report.replicas import write_comparison

    check_folder(out, "--out")
    text, folder = write_comparison(store, sweeps, out)
    print(text)
    print(folder)


def main() -> None:
    """Entry point: errors become one line and the promised exit code."""
    try:
        app()
    except DataError as error:
        from ntier_analysis.places import as_given

        print(f"error: {one_line(DataError(as_given(error)))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # who read our output has gone
        sys.stdout = None
        sys.exit(1)
    except OSError as error:  # a full disk
        place = f"{error.filename}: " if error.filename else ""
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except MemoryError:
        print("error: not enough memory for these data (a limit of the shell or container?)", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
