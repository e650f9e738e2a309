"""A folder with one good file for each door."""

from __future__ import annotations

from pathlib import Path

import good_import
import numpy as np
import pytest
from good_files import load_generators
from ntier_analysis.importing import import_folder
from synthetic import T0, sysstat_json


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good file for each door."""
    folder = tmp_path_factory.mktemp("good")
    contents = good_import.files()
    contents["interactions"] = contents["interactions"].groupby("trial").head(40)
    good_import.write(folder / "in", contents)
    rows = [f"{1_790_000_000_000 + 100 * i},{40 + i % 7},Home,200,true,512,30" for i in range(300)]
    (folder / "run.jtl").write_text(
        "\n".join(["timeStamp,elapsed,label,responseCode,success,bytes,allThreads", *rows, ""])
    )
    (folder / "db1.json").write_text(sysstat_json(T0 + np.arange(30.0), np.full(30, 40.0), "db1"))
    (folder / "runs.csv").write_text("jtl,sa,users,trial\nrun.jtl,db1=db1.json,30,one\n")
    (folder / "prices.json").write_text(
        '{"currency": "EUR", "source": "x", "per_hour": {"normal": 0.1, "low_cost": 0.03}}'
    )
    (folder / "expected.yaml").write_text(
        's:\n  - "max_throughput >= 10"\nt: {verdict: single, knee_users: [1, 5000]}\n'
    )
    for name, content in load_generators().items():
        (folder / name).write_text(content)
    import_folder(folder / "in", folder / "store")
    other = {name: frame.assign(sweep="t") for name, frame in contents.items()}
    other["trials"] = other["trials"].assign(topology="1/1/1/2M")
    import_folder(good_import.write(folder / "other", other), folder / "store")
    return folder
