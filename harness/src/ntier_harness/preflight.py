"""What must hold before anything is installed or touched. `plan` checks the same as the commands that work, so it
refuses the same requests. Reads only."""

from __future__ import annotations

import os
import shutil

from ntier_harness import ledger, plan, schedule, settings
from ntier_harness.errors import RequestError
from ntier_harness.lab import Lab
from ntier_harness.paths import Paths, nearest
from ntier_harness.screen import size
from ntier_harness.spec import Spec

SPARE_BYTES = 100_000_000  # of disk, beside the trials


def check(lab: Lab, spec: Spec, attempts: int) -> None:
    """Raises RequestError for the first thing that keeps the sweep from being run here; WorkError for a broken record
    of a search."""
    check_record(lab, spec)
    left = schedule.to_come(lab, spec, attempts)
    if left:
        check_disk(lab.paths, plan.disk_bytes(spec, left))
        check_machine(lab, spec)


def check_programs(lab: Lab, spec: Spec) -> None:
    """Raises RequestError if set-up must make a program first that it does not make by itself. A plan only says so."""
    if missing := missing_programs(lab.paths, spec):
        raise RequestError(missing[0])


def missing_programs(paths: Paths, spec: Spec) -> list[str]:
    """A line for each program that a chosen variant needs and that is not there, with what to do."""
    variants = spec.system.definition.variants
    wanted = [(name, variants[variant].choices[name]) for variant, name in spec.chosen.items()]
    return [
        f"{choice.title or name}: its programs are not on this machine; {choice.program.get}"
        for name, choice in wanted
        if choice.program and choice.program.made and not os.path.exists(paths.state / choice.program.made)
    ]


def check_record(lab: Lab, spec: Spec) -> None:
    """Checks that lab, request and existing manifests belong to one experiment, and that results can be written."""
    check_target(lab, spec)
    check_results(lab.paths, spec.sweep)
    ledger.check_same_experiment(spec, ledger.attempts(lab.paths.raw / spec.sweep), settings.values(spec))


def check_target(lab: Lab, spec: Spec) -> None:
    """Checks that the lab's target is the one that the request names, so that manifests name the right one."""
    if not spec.target == lab.target.name == lab.paths.target:
        raise RequestError(f"target: {spec.sweep} is for target {spec.target}, not {lab.target.name}")


def check_results(paths: Paths, sweep: str) -> None:
    """All folders that a sweep writes to can be made."""
    for folder in (paths.raw / sweep, paths.results / "store", paths.results / "reports" / sweep):
        place = nearest(folder)
        if not place.is_dir():
            raise RequestError(f"results: {place} is not a folder; give another one with --results")
        if not os.access(place, os.W_OK | os.X_OK):
            raise RequestError(f"results: {place} cannot be written; give another one with --results")


def check_disk(paths: Paths, trials_bytes: int) -> None:
    """Raw trials, and as much again for store and reports."""
    needed, free = 2 * trials_bytes + SPARE_BYTES, disk_free(paths)
    if free < needed:
        raise RequestError(
            f"results: {size(needed)} are needed in {paths.results}, {size(free)} are free; free some, or give a "
            "folder on another disk with --results"
        )


def disk_free(paths: Paths) -> int:
    return shutil.disk_usage(nearest(paths.raw)).free


def check_machine(lab: Lab, spec: Spec) -> None:
    """This machine can make the nodes and carry them."""
    if not lab.runner.has(lab.target.terraform):
        raise RequestError(
            "terraform: neither Terraform nor OpenTofu is here; install one of them from its makers, or name its "
            f"program in TERRAFORM (now: {lab.target.terraform})"
        )
    lab.target.check(spec)
