"""What root in Slurm can let the daemons of the head run, with each release that is installed.

Root of a node is root in Slurm by the munge key (docs/security.md), so this is what it can run on the head.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller
from tools.slurm_matrix.__main__ import for_release
from tools.slurm_matrix.roots import slurm_roots

import slurms
from render.plans import cpu, dev

pytestmark = [pytest.mark.slurm, pytest.mark.long]
ROOTS = slurm_roots()
TRIGGERS = {"22.05": True, "24.11": False, "26.05": False}  # disable_triggers
ARCHIVES = {"22.05": True, "24.11": True, "26.05": False}  # DisableArchiveCommands
PATIENCE_S = 60  # slurmctld looks at its triggers every 15 s
PROGRAM = "#!/bin/sh\necho ran >>/mnt/ran-on-head\n"


@pytest.fixture(params=ROOTS)
def head(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[str, Controller]]:
    """A head whose file `program` anybody may run, with its release."""
    plan = for_release(dev(cpu()), request.param)
    with slurms.running_cluster_with_nodes(plan, tmp_path, ROOTS[request.param], accounting=True) as controller:
        (tmp_path / "program").write_text(PROGRAM)
        (tmp_path / "program").chmod(0o755)
        yield request.param, controller


def has_run(cluster: Controller, within_s: float) -> bool:
    until = time.monotonic() + within_s
    while not (found := (cluster.directory / "ran-on-head").exists()) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def test_slurmctld_runs_no_trigger_where_slurm_can_refuse_them(head: tuple[str, Controller]) -> None:
    release, cluster = head
    answer = cluster.run("strigger", "--set", "--reconfig", "--program=/mnt/program")
    slurms.scontrol(cluster, "reconfigure")
    ran = has_run(cluster, PATIENCE_S if TRIGGERS[release] else 20)
    refused = answer.returncode != 0 and "disabled" in answer.stderr.lower()
    assert (refused, ran) == (not TRIGGERS[release], TRIGGERS[release]), answer


def test_slurmdbd_runs_no_archive_script_where_slurm_can_refuse_it(head: tuple[str, Controller]) -> None:
    release, cluster = head
    words = ("archive", "dump", "script=/mnt/program", "purgejobafter=1months")
    answer = cluster.run("sacctmgr", "-i", *words)
    ran = has_run(cluster, 5)
    # sacctmgr fails either way: the program gives slurmdbd no answer that it understands.
    refused = "archived data is disabled" in answer.stdout + answer.stderr
    assert (refused, ran) == (not ARCHIVES[release], ARCHIVES[release]), answer
