"""Jobs in containers, with the real enroot and Pyxis: compiled by each machine, run by ordinary users over two nodes.

Needs their sources, which corral fetches from GitHub, so `make containers` runs it and the other targets do not.
"""

from __future__ import annotations

import pytest
from clusters import UP_IN_S, Cluster
from container_image import make_image
from people import as_person

import boxes
from corral.box.account import ACCOUNT, REGION
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.container_sources]
PEOPLE = """    containers: pyxis
    jobs:
      registries: [team/train]
    access:
      users:
        ada: {uid: 2000}
        bo: {uid: 2001}
"""
ADA, BO = "/home/ada", "/home/bo"
IMAGE = f"{ADA}/image.sqsh"
# Writes a checkpoint where Lightning's script says, from inside of the container.
PROGRAM = """
import os, pathlib
pathlib.Path(os.environ["CHECKPOINT_DIR"], "step-1").write_text(open("/inside").read())
print("trained in", open("/inside").read(), flush=True)
"""
# What MPI_Init of a library with PMI2 does first. Source: Slurm, contribs/pmi2/pmi2_api.c, PMI2_Init.
MPI = """import os
fd = int(os.environ["PMI_FD"])
os.write(fd, b"cmd=init pmi_version=2 pmi_subversion=0\\n")
print(os.environ["PMI_RANK"], "of", os.environ["PMI_SIZE"], os.read(fd, 200).decode().strip())
"""


def test_people_run_jobs_in_containers(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("containers")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        with cluster.spec.open("a") as spec:
            spec.write(PEOPLE)
        cluster.life.done("up", "dev")
        cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
        cluster.until(lambda: cluster.on_head("id", "bo"))
        make_image(cluster.home() / "ada/image.sqsh", directory)
        see_the_container(cluster)
        keep_people_apart(cluster)
        run_a_job_script(cluster)
        leave_nothing(cluster)
        cluster.life.done("down", "dev")


def see_the_container(cluster: Cluster) -> None:
    """ada's tasks on two nodes."""
    srun = f"srun --partition=train --nodes=2 --ntasks-per-node=1 --label --container-image={IMAGE}"
    with step("a task on each of two nodes runs in the image, as the person who started it"):
        lines = as_person(cluster, "ada", f"{srun} sh -c 'cat /inside; echo \" $(id -u)\"'").splitlines()
        assert sorted(line for line in lines if "the image" in line) == ["0: the image 2000", "1: the image 2000"], (
            lines
        )
    with step("it has the shared home, and what it writes there is hers"):
        as_person(cluster, "ada", f"{srun} sh -c 'touch {ADA}/from-$SLURM_PROCID'")
        owners = {(cluster.home() / f"ada/from-{rank}").stat().st_uid for rank in (0, 1)}
        mine = (cluster.home() / "ada").stat().st_uid
        assert owners == {mine}
    with step("the variable that leads to the job role is set"):
        assert "http" in as_person(cluster, "ada", f"{srun} printenv AWS_CONTAINER_CREDENTIALS_FULL_URI")
    with step("the tasks of an MPI program in the image reach Slurm"):
        (cluster.home() / "ada/mpi.py").write_text(MPI)
        lines = as_person(cluster, "ada", f"{srun} --mpi=pmi2 python3 {ADA}/mpi.py").splitlines()
        answer = "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0"
        assert sorted(line for line in lines if "cmd=" in line) == [f"0: 0 of 2 {answer}", f"1: 1 of 2 {answer}"], lines
    with step("a job logs in to ECR by the job role, without variables of its own"):
        box = "AWS_ENDPOINT_URL=$(. /etc/profile; echo $AWS_ENDPOINT_URL)"
        command = f"env --unset=AWS_CONTAINER_CREDENTIALS_FULL_URI {box} /opt/corral/bin/ecr-password"
        printed = as_person(cluster, "ada", f"srun --partition=train sh -c '{command}'")
        assert f"{ACCOUNT}-auth-token" in printed.splitlines(), printed
    with step("enroot reads the file that leads there"):
        host = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com"
        printed = as_person(
            cluster,
            "ada",
            "srun --partition=train sh -c 'cat /etc/corral/enroot/.credentials; /usr/local/bin/enroot info'",
        )
        assert f"machine {host} login AWS password $(/opt/corral/bin/ecr-password)" in printed, printed
        assert "ENROOT_CONFIG_PATH=/etc/corral/enroot\n" in printed, printed


def keep_people_apart(cluster: Cluster) -> None:
    """Nobody reads what is another's through a container, not even as its root."""
    as_person(cluster, "bo", "echo hidden > secret; chmod 600 secret; chmod 700 .")
    as_person(cluster, "ada", "chmod 755 .")
    srun = f"srun --partition=train --container-image={IMAGE}"
    for options, user in (("", "2000"), ("--container-remap-root", "0")):
        with step(f"user {user} of ada's container does not read bo's file"):
            read = f"sh -c 'echo I am $(id -u); cat {BO}/secret'"
            lines = as_person(cluster, "ada", f"{srun} {options} {read}").splitlines()
            assert {f"I am {user}", f"cat: {BO}/secret: Permission denied"} <= set(lines), lines
    with step("bo does, in the same image"):
        assert as_person(cluster, "bo", f"{srun} cat {BO}/secret") == "hidden"
    with step("bo does not enter ada's containers on a node"):
        answer = as_person(cluster, "bo", "srun --partition=train --nodelist=train-1 ls /var/lib/enroot/2000")
        assert "Permission denied" in answer, answer


def run_a_job_script(cluster: Cluster) -> None:
    """lightning.sbatch with CONTAINER."""
    (cluster.home() / "ada/program.py").write_text(PROGRAM)
    job = as_person(
        cluster, "ada", f"CONTAINER={IMAGE} sbatch --parsable /opt/corral/jobs/train/lightning.sbatch program.py"
    )
    state = cluster.end(int(job))
    text = (cluster.home() / f"ada/lightning-{job}.out").read_text()
    with step("a job script runs its program in the container that CONTAINER names"):
        assert (state, "trained in the image" in text) == (("COMPLETED", "0"), True), text


def leave_nothing(cluster: Cluster) -> None:
    """A named container lasts as long as its job."""
    named = "srun --container-name=kept"
    steps = f"{named} --container-image={IMAGE} true; {named} cat /inside; echo; ls /var/lib/enroot/2000/data"
    job = as_person(cluster, "ada", f"sbatch --parsable --partition=train --nodelist=train-1 --wrap='{steps}'")
    cluster.end(int(job))
    lines = (cluster.home() / f"ada/slurm-{job}.out").read_text().splitlines()
    with step("the next step of a job finds the container that it named"):
        assert lines[-2:] == ["the image", f"pyxis_{job}_kept"], lines
    with step("it is gone after the job, and the node takes others"):
        node, data = cluster.instance_of("train-1"), "/var/lib/enroot/2000/data"
        cluster.until(lambda: cluster.on(node, "sh", "-c", f"ls -A {data} | wc -l") == "0")
        assert "DRAIN" not in cluster.node("train-1")["State"]
