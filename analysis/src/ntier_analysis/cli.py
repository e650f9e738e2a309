"""`ntier-analysis`: raw trials -> store -> verdict -> report. Heavy imports happen inside the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ntier_analysis.errors import DataError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Finds the bottleneck of a multi-tier system in what an experiment measured.",
)

Store = Annotated[Path, typer.Option("--store", help="Folder of the Parquet store.")]
Sweeps = Annotated[list[str] | None, typer.Argument(help="Names of sweeps; default: all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
STORE = Path("results/store")


@app.command()
def validate(trial: Annotated[Path, typer.Argument(help="Folder of a raw trial.")], json: AsJson = False) -> None:
    """Checks whether a raw trial counts (docs/validity.md). Exit code 0 also if it does not."""
    from ntier_analysis.trial import RawTrial
    from ntier_analysis.validity.registry import validate as run

    found = run(RawTrial(trial))
    if json:
        print(found.model_dump_json(indent=1))
        return
    from ntier_analysis.texts import checks_text

    print(checks_text(found))


@app.command()
def ingest(
    sweeps: Sweeps = None,
    raw: Annotated[Path, typer.Option(help="Folder of the raw results.")] = Path("results/raw"),
    store: Store = STORE,
    force: Annotated[bool, typer.Option(help="Rebuild also what did not change.")] = False,
    revalidate: Annotated[
        bool, typer.Option(help="Run the validity checks again, whatever the manifest says.")
    ] = False,
) -> None:
    """Raw trials -> store. Exit code 1 if a file could not be read (the others are stored)."""
    from ntier_analysis.ingest import ingest_sweep, sweep_folders

    problems = 0
    for folder in sweep_folders(raw, sweeps or []):
        done = ingest_sweep(folder, store, force=force, revalidate=revalidate)
        state = "unchanged" if done.unchanged else f"{done.trials} trials, {done.valid} valid"
        print(f"{done.sweep}: {state}")
        for problem in done.problems:
            print(f"error: {problem}", file=sys.stderr)
        problems += len(done.problems)
    if problems:
        raise typer.Exit(1)


@app.command()
def verdict(
    store: Annotated[Path, typer.Argument(help="Folder of the store.")] = STORE,
    sweep: Annotated[list[str] | None, typer.Option(help="Only this sweep (may be repeated).")] = None,
    json: AsJson = False,
) -> None:
    """What limits each sweep's throughput, how sure that is, and why."""
    from ntier_analysis.verdict.store import verdicts

    found = verdicts(store, sweep or [])
    if json:
        import orjson

        from ntier_analysis.verdict.tables import as_json

        document = {"sweeps": [as_json(v) for v in found]}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    from ntier_analysis.texts import verdict_text

    print("\n\n".join(verdict_text(v) for v in found) or "the store holds no sweep")


@app.command()
def demands(sweeps: Sweeps = None, store: Store = STORE, json: AsJson = False) -> None:
    """CPU that an interaction needs of each node, ms, by the utilization law over the valid loads of each sweep."""
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
) -> None:
    """Store -> bottleneck maps, throughput surfaces, ratios, scale-out and costs over topologies (docs/maps.md)."""
    from ntier_analysis.campaign.costs import read_prices
    from ntier_analysis.campaign.store import read_campaign
    from ntier_analysis.report.maps import write_map

    print(write_map(read_campaign(store, sweeps, mix), read_prices(prices), slo_ms, out))


@app.command()
def cheapest(
    throughput: Annotated[float, typer.Option(help="Nominal interactions per second that are needed.")],
    store: Store = STORE,
    slo_ms: Slo = None,
    mix: Mix = None,
    prices: PricesFile = None,
    json: AsJson = False,
) -> None:
    """The cheapest measured topology for a throughput within an objective. Exit code 3 if none is sure to carry it."""
    from ntier_analysis.campaign.costs import answer, read_prices
    from ntier_analysis.campaign.store import read_campaign

    found = answer(read_campaign(store, None, mix), read_prices(prices), throughput, slo_ms)
    print(found.json() if json else found.text())
    if found.best is None:
        raise typer.Exit(3)


@app.command()
def predict(
    sweep: Annotated[str, typer.Argument(help="Name of the sweep.")],
    topo: Annotated[str | None, typer.Option(help="What if: another topology, for example 1/1/1/2M.")] = None,
    cores: Annotated[list[str] | None, typer.Option(help="TYPE=CORES of a node type the store has no node of.")] = None,
    jmt: Annotated[Path | None, typer.Option(help="Also write the model for JMVA to this file.")] = None,
    store: Store = STORE,
    json: AsJson = False,
) -> None:
    """What a closed model of the sweep's demands predicts, beside the measurement, and for another topology."""
    from ntier_analysis.prediction.store import predicted, text

    document = predicted(store, sweep, topo, cores or [], jmt)
    if json:
        import orjson

        print(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())
        return
    print(text(document))


@app.command("import")
def import_(
    folder: Annotated[Path, typer.Argument(help="Folder with trials.csv, samples.csv and maybe interactions.csv.")],
    store: Store = STORE,
) -> None:
    """Adds measurements of another system to the store (columns: docs/analysis.md)."""
    from ntier_analysis.importing import import_folder

    for line in import_folder(folder, store):
        print(line)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="SQL; the store's tables are views of their names.")],
    store: Store = STORE,
    csv: Annotated[bool, typer.Option(help="Print CSV instead of a table.")] = False,
) -> None:
    """Runs SQL (DuckDB) on the store, read-only."""
    from ntier_analysis.store.query import run

    frame = run(store, query)
    print(frame.to_csv(index=False), end="") if csv else print(frame.to_string(index=False))


@app.command()
def check(
    store: Annotated[Path, typer.Argument(help="Folder of the store.")],
    expected: Annotated[Path, typer.Argument(help="JSON: {sweep: {key of the verdict: expected value}}.")],
) -> None:
    """Compares verdicts with what is expected; exit code 3 if an expectation does not hold."""
    from ntier_analysis.expectation import differences

    wrong = differences(store, expected)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        raise typer.Exit(3)
    print("all expectations hold")


@app.command()
def report(
    sweeps: Sweeps = None,
    store: Store = STORE,
    out: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results/reports"),
) -> None:
    """Store -> report of each sweep (HTML, Markdown, figures, tables)."""
    from ntier_analysis.report import write_report
    from ntier_analysis.store.tables import sweeps as stored

    names = stored(store)
    unknown = [s for s in sweeps or [] if s not in names]
    if unknown:
        raise DataError(f"no sweep {unknown[0]!r} in {store}; there are: {', '.join(names) or 'none'}")
    for name in sweeps or names:
        print(write_report(store, name, out))


def main() -> None:
    try:
        app()
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
