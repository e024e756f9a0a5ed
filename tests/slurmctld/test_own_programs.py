"""An environment's own programs and plugins in a real slurmctld and slurmd: when they run, and what they change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tools.slurm_head.controller import Controller
from tools.slurm_matrix.roots import slurm_roots

import slurms
from corral.agent.config.file_placements import placements_for
from corral.agent.file_install import install
from corral.model.enums import Role
from corral.model.hooks import HooksPlan
from corral.render import cluster_files
from render.plans import cpu, dev

pytestmark = [pytest.mark.slurm, pytest.mark.long]
PATIENCE_S = 60
REPORT = '#!/bin/sh\necho "{where} $(id -un) $SLURM_JOB_ID" >>/mnt/seen\n'
JOB_SUBMIT = """
function slurm_job_submit(job, partitions, uid)
    if job.time_limit == slurm.NO_VAL then
        slurm.log_user("set a time limit: --time=1:00:00")
        return slurm.ERROR
    end
    job.comment = "seen by lua"
    return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
    return slurm.SUCCESS
end
"""
HOOKS = HooksPlan(
    prolog=REPORT.format(where="prolog"),
    epilog=REPORT.format(where="epilog"),
    prolog_slurmctld=REPORT.format(where="prolog_slurmctld"),
    epilog_slurmctld=REPORT.format(where="epilog_slurmctld"),
    job_submit=JOB_SUBMIT,
    plugstack=("optional missing.so",),
)
PROGRAMS = (
    *("/opt/corral/bin/prolog", "/opt/corral/prolog.d/50-environment"),
    *("/opt/corral/bin/epilog", "/opt/corral/epilog.d/50-environment"),
)
ROOTS = slurm_roots()


@pytest.fixture(scope="module", params=ROOTS)
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Controller]:
    """A cluster of each release that is installed here; `make slurm-matrix` installs the newer ones."""
    plan = replace(dev(cpu(), slurm_version=request.param), hooks=HOOKS)
    directory = tmp_path_factory.mktemp("own")
    with slurms.running_cluster_with_nodes(plan, directory, ROOTS[request.param]) as controller:
        files = {name: text.encode() for name, text in cluster_files(plan).items()}
        placed = {one.path: one for one in placements_for(files, Role.COMPUTE, "cpu")}
        install([placed[path] for path in PROGRAMS], controller.directory)
        slurms.must(controller.run("sh", "-c", "mkdir /run/corral && touch -d 2100-01-01 /run/corral/healthy"))
        image = controller.directory / "opt/corral/epilog.d/90-image"
        image.write_text(REPORT.format(where="image"))
        image.chmod(0o755)
        yield controller


def run(cluster: Controller, command: str) -> tuple[str, str]:
    """Submit a job to the only node; its id, once it is over and all programs have ended, and its output."""
    words = ("--partition=cpu", "--time=5", "--output=/mnt/out-%j", "--chdir=/", f"--wrap={command}")
    job = slurms.must(cluster.run("sbatch", "--parsable", *words)).strip()
    until = time.monotonic() + PATIENCE_S
    while f"epilog_slurmctld root {job}" not in seen(cluster) or f"image root {job}" not in seen(cluster):
        assert time.monotonic() < until, (seen(cluster), cluster.log())
        time.sleep(0.1)
    return job, (cluster.directory / f"out-{job}").read_text()


def seen(cluster: Controller) -> list[str]:
    file = cluster.directory / "seen"
    return file.read_text().splitlines() if file.exists() else []


def test_programs_run_around_a_job_the_environments_before_the_images(cluster: Controller) -> None:
    job, _ = run(cluster, "echo job root $SLURM_JOB_ID >>/mnt/seen")
    lines = [line.split()[0] for line in seen(cluster) if line.endswith(f" {job}")]
    on_head = [line for line in lines if line.endswith("_slurmctld")]
    on_node = [line for line in lines if not line.endswith("_slurmctld")]
    assert (on_head, on_node) == (
        ["prolog_slurmctld", "epilog_slurmctld"],
        ["prolog", "job", "epilog", "image"],
    )


def test_lua_changes_a_job(cluster: Controller) -> None:
    held = slurms.must(
        cluster.run("sbatch", "--parsable", "--hold", "--partition=cpu", "--time=5", "--wrap=hostname")
    ).strip()
    assert "Comment=seen by lua" in slurms.scontrol(cluster, "show", "job", held)


def test_lua_refuses_a_job_with_its_reason(cluster: Controller) -> None:
    refused = cluster.run("sbatch", "--partition=cpu", "--wrap=hostname")
    assert refused.returncode == 1
    assert "sbatch: error: set a time limit: --time=1:00:00\n" in refused.stderr


def test_a_node_receives_the_lines_of_plugins(cluster: Controller) -> None:
    run(cluster, "true")
    received = cluster.directory / "var/spool/slurmd/conf-cache/plugstack.conf"
    assert "optional missing.so" in received.read_text().splitlines()


def test_jobs_run_without_an_optional_plugin_and_not_without_a_required_one(cluster: Controller) -> None:
    _, output = run(cluster, "srun echo started 2>&1")
    conf = cluster.directory / "etc/slurm/plugstack.conf"
    optional = conf.read_text()
    conf.write_text("required missing.so\n")
    refused = cluster.run("sbatch", "--partition=cpu", "--time=5", "--wrap=hostname")
    conf.write_text(optional)
    assert "started" in output.splitlines()
    assert "plugstack.conf:1: Failed to load plugin missing.so. Aborting." in refused.stderr


def test_slurm_waits_five_minutes_for_a_program(cluster: Controller) -> None:
    assert slurms.show_config(cluster)["PrologEpilogTimeout"] == "300"
