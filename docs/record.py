"""Records the pictures of docs/figures from the demo: figures, the report in a browser, the terminal.

    python docs/record.py            # needs Chromium; about a minute

Run it after a change of the report, of its figures or of what a sweep prints. A test fails if the terminal's picture is
old."""

from __future__ import annotations

import base64
import html
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
SWEEP = "1-1-1-1M.browse_only.shardingsphere"
COPIED = ("throughput", "density-map-db1-cpu", "density-surface-db1-cpu")
"""Figures of the report that pages show."""
SCREENS = {"report.png": (1280, 1050), "report-phone.png": (390, 844)}
"""Picture -> width and height of the browser's window, pixels."""
COLUMNS = 120
"""Of the terminal; longer lines go on in the next one, as there."""
COMMAND = f"ntier-analysis report {SWEEP} --store ntier-demo/store --out ntier-demo/reports"
"""Prints what the end of a sweep prints."""
LETTER_PX, LINE_PX, EDGE_PX = 7.8, 18, 14
NO_BREAK = "\u00a0"
"""Browsers draw several spaces of an SVG's text as one, but each of these."""


def terminal(command: str, printed: str) -> str:
    """An SVG with the text of a terminal, letter by letter."""
    lines = [f"$ {command}", *printed.rstrip("\n").split("\n")]
    rows = [line[at : at + COLUMNS] for line in lines for at in range(0, max(len(line), 1), COLUMNS)]
    width, height = 2 * EDGE_PX + LETTER_PX * COLUMNS, 2 * EDGE_PX + LINE_PX * len(rows)
    texts = [
        f'<text x="{EDGE_PX}" y="{EDGE_PX + LINE_PX * (n + 0.75):g}" textLength="{LETTER_PX * len(row):g}">'
        f"{html.escape(row).replace(' ', NO_BREAK)}</text>"
        for n, row in enumerate(rows)
        if row
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-size="13" '
            'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" fill="#e6e6e6">',
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#1d2330"/>',
            *texts,
            "</svg>\n",
        ]
    )


def main() -> None:
    sys.path.insert(0, str(ROOT / "analysis/tests"))
    from browser import browser

    with tempfile.TemporaryDirectory() as folder:
        program = Path(sys.executable).with_name("ntier-analysis")
        subprocess.run([program, "demo"], cwd=folder, check=True)
        done = subprocess.run([program, *COMMAND.split()[1:]], cwd=folder, check=True, capture_output=True, text=True)
        (FIGURES / "terminal.svg").write_text(terminal(COMMAND, done.stdout), encoding="utf-8")
        report = Path(folder, "ntier-demo/reports", SWEEP)
        for name in COPIED:
            shutil.copy(report / f"figures/{name}.png", FIGURES)
        with browser(Path(folder, "profile")) as page:
            for name, (width, height) in SCREENS.items():
                page.call("Emulation.setScrollbarsHidden", hidden=True)
                page.open(report / "report.html", width, height)
                picture = page.call("Page.captureScreenshot", format="png")["data"]
                (FIGURES / name).write_bytes(base64.b64decode(picture))


if __name__ == "__main__":
    main()
