"""Slurm's daemons of a head as the user `slurm`, as which their units start them, in the release that is installed.

Debian 12's own units of 22.05 would start them as root: their files may be left from such a start.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from corral.agent.host.base import as_system_user
from render.plans import cpu, dev

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which becomes slurm")]
STATE = "var/lib/corral/slurmctld"
PREPARE = (*as_system_user("slurm"), "/opt/corral/bin/restore-scripts")
# What root has started ends. Then each daemon starts as by its unit, and answers.
AS_SLURM = f"""set -eu
kill $(pidof slurmctld) $(pidof slurmdbd)
while pidof slurmctld || pidof slurmdbd; do sleep 0.05; done >/dev/null
export MYSQL_UNIX_PORT=/run/mysqld/mysqld.sock
as_slurm="{" ".join(as_system_user("slurm"))}"
$as_slurm slurmdbd -D >/mnt/slurmdbd-as-slurm.out 2>&1 &
until [ "$(sacctmgr --noheader --parsable2 show cluster format=cluster 2>/dev/null)" = dev ]; do sleep 0.1; done
{" ".join(PREPARE)}
$as_slurm slurmctld -D >>/mnt/slurmctld.out 2>&1 &
until scontrol ping 2>/dev/null | grep -q UP; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with slurms.running_cluster(dev(cpu()), tmp_path_factory.mktemp("head"), accounting=True) as controller:
        slurms.must(controller.run("timeout", "60", "sh", "-c", AS_SLURM))
        yield controller


def submit(cluster: Controller) -> Path:
    """The directory with the script of a job that waits."""
    words = ("--parsable", "--hold", "--partition=cpu", "--time=5", "--chdir=/", "--wrap=true")
    job = slurms.must(cluster.run("sbatch", *words)).strip()
    (directory,) = (cluster.directory / STATE).glob(f"hash.*/job.{job}")
    return directory


def test_slurmctld_and_slurmdbd_run_as_slurm_and_take_jobs(cluster: Controller) -> None:
    submit(cluster)
    lines = slurms.must(cluster.run("ps", "-eo", "comm=,user=")).splitlines()
    daemons = {tuple(line.split()) for line in lines if line.startswith(("slurmctld", "slurmdbd"))}
    assert daemons == {("slurmctld", "slurm"), ("slurmdbd", "slurm")}


def test_what_prepares_a_start_repairs_the_script_of_a_job_as_slurm(cluster: Controller) -> None:
    script = submit(cluster) / "script"
    script.write_bytes(b"")
    slurms.must(cluster.run(*PREPARE))
    assert (script.read_text()[:9], script.owner(), script.stat().st_mode & 0o777) == ("#!/bin/sh", "slurm", 0o600)


def test_what_prepares_a_start_writes_nothing_through_a_link_of_slurms(cluster: Controller) -> None:
    """As root it would: a file such as /etc/ld.so.preload would get the text of a script, and slurm as its owner."""
    file = cluster.directory / "file-of-roots"
    file.write_text("")
    file.chmod(0o644)
    script = submit(cluster) / "script"
    script.unlink()
    script.symlink_to("/mnt/file-of-roots")
    done = cluster.run(*PREPARE)
    script.unlink()
    assert (done.returncode, file.read_text(), file.owner()) == (1, "", "root")
