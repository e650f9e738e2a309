"""The public API: every example runs, what it shows is what the commands say, and errors name what there is."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ntier_analysis as na
import numpy as np
import pandas as pd
import pytest
from ntier_analysis import api
from ntier_analysis.report.drawings import LOAD_FIGURES
from ntier_analysis.store.tables import read_table, write_table
from program import called

ROOT = Path(__file__).parents[3]
SWEEP = "1-1-1-1M.browse_only.shardingsphere"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["ntier_analysis", *(f"ntier_analysis.api.{m.name}" for m in pkgutil.iter_modules(api.__path__))]


@pytest.fixture(autouse=True)
def unpacked_once(demo, monkeypatch):
    """Every process would unpack and judge the demo's sweeps for itself, with the same result."""
    monkeypatch.setattr("ntier_analysis.api.store._demo", lambda: demo)


@pytest.fixture(scope="module")
def store(demo) -> na.Store:
    return na.Store(demo)


@pytest.fixture(scope="module")
def sweep(store) -> na.Sweep:
    return store.sweep(SWEEP)


def test_a_store_shows_its_first_sweep_unless_another_is_named(store, tmp_path):
    assert store.sweep().name == store.sweeps[0]
    (tmp_path / "trials").mkdir()
    with pytest.raises(na.DataError, match="holds no sweep"):
        na.Store(tmp_path).sweep()


def test_a_store_tells_whether_it_has_a_sweep(store, sweep):
    """By its name. (Compared with the sweeps themselves, no name was there.)"""
    assert SWEEP in store
    assert sweep in store
    assert f"{SWEEP}x" not in store


def test_figures_that_a_sweep_does_not_have_are_left_out(sweep):
    assert [d.name for d in sweep.figures("statements-per-replica", "response-time", "throughput")] == [
        "throughput",
        "response-time",
    ]
    assert {d.name for d in sweep.figures()} <= set(LOAD_FIGURES)


def test_a_figure_that_no_sweep_has_is_an_error(sweep):
    """A name with a slip drew nothing, and said nothing."""
    with pytest.raises(na.DataError, match=r"no figure 'utilisation'; there may be: throughput, .*pools"):
        sweep.figures("throughput", "utilisation")


# ---- examples ------------------------------------------------------------------------------------------------------


def docstrings(module) -> list[str]:
    """Of a module, its classes, and their members (doctest's own finder does not see cached properties)."""
    texts = [module.__doc__]
    for cls in (c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == module.__name__):
        texts += [cls.__doc__, *(getattr(member, "__doc__", None) for member in vars(cls).values())]
    return [inspect.cleandoc(text) for text in texts if isinstance(text, str)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_docstrings_run(name, monkeypatch):
    if name == "ntier_analysis.api.store":
        monkeypatch.undo()  # it shows how the demo's own store is opened
    module, count = importlib.import_module(name), 0
    for text in {*docstrings(module)}:
        example = doctest.DocTestParser().get_doctest(text, {}, name, module.__file__, 0)
        assert doctest.DocTestRunner(optionflags=FLAGS).run(example).failed == 0, text
        count += len(example.examples)
    assert count == Path(module.__file__).read_text().count(">>> ")  # none is left out


def test_each_class_has_an_example():
    classes = [c for c in (getattr(na, n) for n in na.__all__) if c not in (na.DataError, na.Bottleneck)]
    assert all(">>> " in inspect.getdoc(c) for c in classes)
    public = [m for c in classes for n, m in vars(c).items() if not n.startswith("_") and not n.endswith("_pct")]
    documented = [m for m in public if callable(m) or hasattr(m, "__get__")]
    assert len(documented) > 30


def test_examples_of_the_documentation_run():
    chapter = (ROOT / "docs/analysis.md").read_text().split("## From Python\n")[1].split("\n## ")[0]
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", chapter, re.DOTALL))
    example = doctest.DocTestParser().get_doctest(blocks, {}, "docs/analysis.md", None, 0)
    assert len(example.examples) > 8
    assert doctest.DocTestRunner(optionflags=FLAGS).run(example).failed == 0


def test_the_three_lines_of_the_readme(store, tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(list(filter(None, block.splitlines()))) == 3
    (tmp_path / "results").mkdir()
    (tmp_path / "results/store").symlink_to(store.path.resolve())
    *first, last = block.splitlines()
    program = "\n".join([*first, f"print(repr({last}))"])
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(store.sweep(SWEEP).verdict)


def test_every_name_of_the_chapter_exists(store, sweep):
    """The tables of the chapter name what there is."""
    chapter = (ROOT / "docs/analysis.md").read_text().split("## From Python\n")[1].split("\n## ")[0]
    named = set(re.findall(r"\b(store|sweep)\.([a-z_]+)", chapter))
    assert len(named) > 20
    assert all(hasattr({"store": na.Store, "sweep": na.Sweep}[thing], name) for thing, name in named)
    parts = {"verdict": sweep.verdict, 'density("db1"': sweep.density("db1"), "map()": store.map()}
    for start, thing in parts.items():
        (row,) = [r for r in chapter.splitlines() if re.match(rf"\| `\w+\.{re.escape(start)}", r)]
        names = re.findall(r"`\.([a-z_]+)", row)
        assert len(names) > 2
        assert all(hasattr(thing, name) for name in names)


def test_importing_it_loads_nothing_heavy():
    heavy = "{'numpy', 'pandas', 'scipy', 'pyarrow', 'matplotlib', 'duckdb', 'pydantic'}"
    program = f"import sys, ntier_analysis as na; dir(na); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- one truth -----------------------------------------------------------------------------------------------------


def test_the_verdict_is_what_the_command_prints(store, sweep):
    arguments = ["verdict", str(store.path), "--sweep", SWEEP, "--json"]
    done = called(*arguments)
    assert json.loads(done.stdout)["sweeps"] == [sweep.verdict.to_dict()]
    said = repr(sweep.verdict)
    low, high = sweep.verdict.max_throughput_interval
    for text in (
        sweep.verdict.sentence,
        sweep.verdict.kind,
        f"[{low:.0f}, {high:.0f}]",
        sweep.verdict.analysis_version,
    ):
        assert text in said


def test_a_density_has_the_integral_1_and_its_shares_are_counted(sweep):
    for node in ("db1", "web1", "client1"):
        density = sweep.density(node, "cpu")
        assert density.curves.shape == (len(density.users), len(density.grid_pct))
        assert np.trapezoid(density.curves, density.grid_pct, axis=1) == pytest.approx(1, abs=1e-6)
        mine = sweep.saturation[(sweep.saturation["node"] == node) & (sweep.saturation["resource"] == "cpu")]
        assert density.share["saturation"].tolist() == mine["saturation"].tolist()
        assert (density.share["saturation_low"] <= density.share["saturation"]).all()
        for drawing in (density.figure(), density.surface()):
            assert drawing.finding
            assert drawing._repr_png_().startswith(b"\x89PNG")


def test_every_utilization_that_was_judged_has_a_density(sweep):
    judged = sweep.saturation[["node", "resource", "item"]].drop_duplicates()
    assert set(judged["resource"]) > {"cpu"}
    for node, resource, item in judged.itertuples(index=False):
        assert len(sweep.density(node, resource, item).users)


def test_samples_are_those_of_the_store(store, sweep):
    everything = read_table(store.path, "samples", SWEEP)
    assert len(sweep.samples(phase=None)) == len(everything)
    some = sweep.samples(node="db1", resource="cpu")
    assert set(some["node"]) == {"db1"}
    assert set(some["resource"]) == {"cpu"}
    assert set(some["phase"]) == {"run"}
    assert some["users"].notna().all()


def test_frames_of_all_sweeps(store):
    assert set(store.trials["sweep"]) == set(store.overview["sweep"]) == set(store.sweeps) == {s.name for s in store}
    for sweep in store:
        assert sweep.verdict.trials["users"].tolist() == sweep.trials["users"].tolist()
        assert sweep.demands.query("reason == ''")["demand_ms"].gt(0).all()


def test_the_lowest_load_is_that_of_what_the_sweep_is_over(store, sweep, tmp_path):
    """The first trial by name has the longest sleep."""
    shutil.copytree(store.path, tmp_path / "store")
    trials = read_table(tmp_path / "store", "trials", SWEEP)
    sleeps = {"factor": "sleep_s", "factor_unit": "s", "factor_value": (14_000 - trials["users"]) / 1000}
    write_table(tmp_path / "store", "trials", SWEEP, trials.assign(users=100, **sleeps))
    sleeping = na.Store(tmp_path / "store").sweep(SWEEP)
    assert sleeping.by_interaction().equals(sweep.by_interaction(13_000))
    with pytest.raises(na.DataError, match=r"no valid trial with sleep_s 5\.5 s; there are: .1\.0, 2\.0"):
        sleeping.by_interaction(5.5)


def told(*trials: tuple[int, list[str]], migration: list[dict] | None = None, valid: bool = True) -> str:
    """What a verdict says of the bottleneck over its loads. trials: users, and what is named there."""
    limits = {n: dict(zip(("tier", "resource"), n.split(), strict=True)) for _, names in trials for n in names}
    rows = [
        {"factor_value": users, "valid": valid, "bottlenecks": [limits[n] for n in names]} for users, names in trials
    ]
    return na.Verdict({"migration": migration or [], "trials": rows}, 1.0).migration_sentence


def test_a_bottleneck_that_one_load_names_is_not_called_unchanged():
    unknown = "Whether the bottleneck changes over the loads is not known: "
    assert told((10, []), (20, [])) == f"{unknown}0 of 2 valid loads name one."
    assert told((10, []), (20, ["db cpu"])) == f"{unknown}1 of 2 valid loads names one."
    assert told((20, ["db cpu"]), (20, ["db cpu"])) == f"{unknown}1 of 1 valid load names one."
    assert told((10, ["db cpu"]), (20, ["db cpu"]), valid=False) == f"{unknown}0 of 0 valid loads name one."
    assert told((5, []), (10, ["db cpu"]), (20, ["db cpu"])) == (
        "The bottleneck does not change over the 2 loads that name one: db CPU."
    )
    assert "do not all name the same: app CPU and db CPU." in told((10, ["db cpu"]), (20, ["app cpu"]))
    move = {"from": {"tier": "db", "resource": "cpu"}, "to": {"tier": "db", "resource": "disk"}}
    assert told(migration=[move | {"from_users": 10, "to_users": 20}]) == (
        "The bottleneck migrates from db CPU at 10 users to db disk at 20 users."
    )


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda s, w: s.sweep("x"), f"no sweep 'x' in .*; there are: {SWEEP}"),
        (lambda s, w: s.compare("x", SWEEP), f"no sweep 'x' in .*; there are: {SWEEP}"),
        (lambda s, w: s.map(["x"]), f"no sweep 'x' in .*; there are: {SWEEP}"),
        (lambda s, w: s.pairs("colour"), "'colour', allowed are dbms, low_cost"),
        (lambda s, w: w.samples("x"), "no node 'x'; there are: app1, client1, db1"),
        (lambda s, w: w.samples("db1", "x"), "no resource 'x' in the samples of db1; there are: cpu"),
        (lambda s, w: w.samples("db1", "cpu", "x"), "no metric 'x' in the samples of cpu of db1; there are: .*utiliz"),
        (lambda s, w: w.samples(phase="x"), "phase 'x': allowed are ramp_up, run"),
        (lambda s, w: w.density("x"), "no node 'x'; there are: app1, client1, db1"),
        (lambda s, w: w.density("db1", "x"), "no resource 'x' with a utilization of db1; there are: cpu"),
        (lambda s, w: w.density("db1", "cpu", "x"), "no item 'x' with a utilization of db1 cpu; there are: "),
        (lambda s, w: w.density("db1").curve(5), "no load of 5 users; there are: 1000, 2000"),
        (lambda s, w: w.figure("x"), "no figure 'x'; there are: throughput, response-time"),
        (lambda s, w: w.by_interaction(5), "no valid trial with 5 users; there are: .1000, 2000"),
        (lambda s, w: s.sql("SELECT nope FROM trials"), "SQL: .*nope"),
    ],
)
def test_a_name_that_does_not_exist_is_answered_by_those_that_do(store, sweep, work, message):
    with pytest.raises(na.DataError, match=message):
        work(store, sweep)


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"no attribute 'Shop'; public are .*Store"):
        _ = na.Shop


def test_a_resource_of_several_items_asks_which(store, tmp_path):
    copy = Path(shutil.copytree(store.path, tmp_path / "store"))
    table = read_table(copy, "saturation", SWEEP)
    cpu = table[(table["node"] == "db1") & (table["resource"] == "cpu")]
    write_table(copy, "saturation", SWEEP, pd.concat([table, cpu.assign(item="second")]))
    with pytest.raises(na.DataError, match="db1 cpu has several items; there are: , second"):
        na.Store(copy).sweep(SWEEP).density("db1", "cpu")


# ---- notebooks -----------------------------------------------------------------------------------------------------


def test_html_is_escaped(store, tmp_path):
    """Names come from data: an import may bring any."""
    copy = Path(shutil.copytree(store.path, tmp_path / "store"))
    evil = "<script>alert(1)</script>"
    document = na.Store(copy).sweep(SWEEP).verdict.to_dict()
    document["bottlenecks"][0]["nodes"] = [evil]
    document["evidence"].append(evil)
    shown = na.Verdict(document, 0.2)._repr_html_()
    assert "<table>" in shown
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") >= 2


@pytest.mark.parametrize("what", ["store", "sweep", "verdict", "map", "compare"])
def test_everything_shows_itself(store, sweep, what):
    thing = {
        "store": lambda: store,
        "sweep": lambda: sweep,
        "verdict": lambda: sweep.verdict,
        "map": store.map,
        "compare": lambda: store.compare(*store.sweeps[::2]),
    }[what]()
    assert thing._repr_html_().count("<tr>") >= 2
    assert "object at 0x" not in repr(thing)
