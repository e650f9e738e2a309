"""What run-jmeter writes for JMeter, which reads it as Java does: Latin-1, escapes, blanks that are dropped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from driver_runs import WORKLOADS, told


def written(folder: Path, properties: dict[str, object]) -> list[str]:
    """Lines of the file; there is no JMeter here, so that it ends when it has written them."""
    request = told(folder, {})
    request["jmeter"]["properties"] = properties
    (folder / "driver.json").write_text(json.dumps(request))
    environment = {**os.environ, "JMETER_HOME": str(folder)}
    done = subprocess.run([WORKLOADS / "bin/run-jmeter", folder], env=environment, capture_output=True, text=True)
    assert (done.returncode, "no JMeter in" in done.stderr) == (2, True), done.stderr
    return (folder / "ntier.properties").read_text(encoding="latin-1").split("\n")


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("city", "Zürich", "city=Z\\u00fcrich"),
        ("face", "a😀b", "face=a\\ud83d\\ude00b"),
        ("padded", "  two", "padded=\\  two"),
        ("inner", "a b=c:d # !", "inner=a b=c:d # !"),
        ("path", "C:\\new\n\tx\r", "path=C:\\\\new\\n\\tx\\r"),
        ("a b:c=d", "1", "a\\ b\\:c\\=d=1"),
        ("#no", "remark", "\\#no=remark"),
        ("größe", 1.5, "gr\\u00f6\\u00dfe=1.5"),
        ("yes", True, "yes=true"),
        ("no", False, "no=false"),
    ],
)
def test_a_property_arrives_as_it_was_given(tmp_path, name, value, line):
    assert line in written(tmp_path, {name: value})
