"""The job scripts: that they fit the queue, and that their shell keeps to the rules."""

import subprocess
from dataclasses import replace

import pytest

from corral.render.jobs import job_files, training_queue
from render.plans import cpu, dev, train

SCRIPTS = ("jobs/jax.sbatch", "jobs/torchrun.sbatch")


def options(script: str) -> set[str]:
    lines = job_files(dev())[script].splitlines()
    return {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")}


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_is_signalled_requeued_and_appends(script: str) -> None:
    assert {"--signal=B:USR1@120", "--requeue", "--open-mode=append", "--exclusive"} - options(script) == set()


def test_torchrun_is_one_task_with_the_whole_node() -> None:
    assert {"--ntasks-per-node=1", "--cpus-per-task=96", "--gpus-per-node=8"} - options("jobs/torchrun.sbatch") == set()


def test_jax_is_one_task_a_gpu() -> None:
    assert {"--ntasks-per-node=8", "--cpus-per-task=12", "--gpus-per-node=8"} - options("jobs/jax.sbatch") == set()


def test_scripts_name_the_first_queue_with_accelerators() -> None:
    plan = dev(replace(cpu(), is_default=True), replace(train(), is_default=False))
    assert training_queue(plan).name == "train"


def test_scripts_of_a_cluster_without_accelerators_ask_for_none() -> None:
    assert [text for text in job_files(dev(cpu())).values() if "--gpus" in text] == []


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_finds_nothing(script: str) -> None:
    done = subprocess.run(["shellcheck", "-"], input=job_files(dev())[script], capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_without_a_program_says_how_to_use_it(script: str) -> None:
    done = subprocess.run(["bash", "-s"], input=job_files(dev())[script], capture_output=True, text=True)
    assert (done.returncode, done.stderr.split(":")[0]) == (2, "usage")
