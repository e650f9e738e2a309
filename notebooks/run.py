"""Executes the notebooks on a store and writes each, with its outputs, as .html to read and as .ipynb to work on.

    notebooks/run.py --store results/store --out results/notebooks [--force] [NAME ...]

A notebook is left as it is if neither it nor the store nor the analysis changed since (--force: executes it anyway).

Exit codes: 0 done, 1 a notebook failed (its outputs so far are kept), 2 wrong request."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from ntier_analysis.digests import of_files, of_program

FOLDER = Path(__file__).parent
TIMEOUT_S = 600


def notebooks() -> dict[str, Path]:
    """Name -> file, in the order of their numbers."""
    return {p.stem: p for p in sorted(FOLDER.glob("[0-9][0-9]-*.py"))}


def load(path: Path, parameters: dict[str, str]) -> nbformat.NotebookNode:
    """Reads a py:percent notebook and sets assignments in its cell tagged `parameters`.

    Raises KeyError for a parameter that the cell does not assign."""
    notebook = jupytext.read(path)
    cell = next(c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    for name, value in parameters.items():
        cell.source, count = re.subn(rf"(?m)^{name} = .*$", lambda _, n=name, v=value: f"{n} = {v!r}", cell.source)
        if not count:
            raise KeyError(f"{path.name}: no parameter {name}")
    return notebook


def execute(path: Path, out: Path, parameters: dict[str, str]) -> Path:
    """Runs one notebook and writes `<name>.ipynb` and `<name>.html`; returns the path of the first. Raises
    CellExecutionError after writing what it got to."""
    notebook = load(path, parameters)
    target = out / f"{path.stem}.ipynb"
    out.mkdir(parents=True, exist_ok=True)
    try:
        # a kernel on Unix sockets, which nobody else on the machine can reach; they lie beside its connection file
        with tempfile.TemporaryDirectory() as private:
            file = f"{private}/kernel.json"
            kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", connection_file=file)
            NotebookClient(notebook, km=kernel, timeout=TIMEOUT_S).execute(cleanup_kc=True)
    finally:
        nbformat.write(notebook, target)
        target.with_suffix(".html").write_text(as_html(notebook, path.stem), encoding="utf-8")
    return target


def as_html(notebook: nbformat.NotebookNode, title: str) -> str:
    """One page with its figures in it, which asks for nothing else: no formulas, widgets or diagrams are loaded."""
    from nbconvert import HTMLExporter  # which takes longer to load than to see that no notebook changed

    exporter = HTMLExporter(require_js_url="", mathjax_url="", jquery_url="", mermaid_js_url="")
    page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": title}})
    return page


def inputs(path: Path, store: Path) -> str:
    """Digest of what a notebook's outputs depend on: its text, the store's tables, the analysis."""
    tables = of_files(sorted(store.glob("*/*.parquet")), store)
    parts = [of_program(), str(store.resolve()), tables, path.read_text(encoding="utf-8")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def record(path: Path, out: Path, made_from: str) -> dict[str, str]:
    """What lies beside the outputs of a notebook that was executed to its end."""
    written = [out / f"{path.stem}{end}" for end in (".html", ".ipynb")]
    return {"inputs": made_from, "outputs": of_files([p for p in written if p.is_file()], out)}


def run(path: Path, out: Path, store: Path, *, force: bool) -> str:
    """Executes a notebook unless that was done; the line to print. Raises CellExecutionError."""
    page, file = out / f"{path.stem}.html", out / f"{path.stem}.inputs.json"
    made_from = inputs(path, store)
    if not force and file.is_file() and file.read_text() == json.dumps(record(path, out, made_from)):
        return f"{page} (unchanged)"
    file.unlink(missing_ok=True)
    execute(path, out, {"STORE": str(store.resolve())})
    file.write_text(json.dumps(record(path, out, made_from)))
    return str(page)


def main(arguments: list[str] | None = None) -> int:
    known = notebooks()
    parser = argparse.ArgumentParser(description="Executes the notebooks on a store.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all ({', '.join(known)})")
    parser.add_argument("--store", type=Path, default=Path("results/store"))
    parser.add_argument("--out", type=Path, default=Path("results/notebooks"))
    parser.add_argument("--force", action="store_true", help="execute also what did not change")
    options = parser.parse_args(arguments)
    unknown = [n for n in options.names if n not in known]
    if unknown:
        parser.error(f"unknown notebook {unknown[0]!r}; there are: {', '.join(known)}")
    if not (options.store / "trials").is_dir():
        parser.error(f"{options.store}: not a store; name another with --store, or make one with: make ingest")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        parser.error(f"--out {options.out}: cannot be written ({error.strerror})")
    failed = 0
    for name in options.names or known:
        try:
            print(run(known[name], options.out, options.store, force=options.force), flush=True)
        except CellExecutionError as error:
            failed = 1
            print(f"{name}: {error.ename}: {error.evalue}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
