"""The box by its commands, and the account's commands in it: status and sweep of what somebody left there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from calls import CORRAL, REPOSITORY, clean_environment, corral

from boxes import running_box
from corral.box import control
from corral.engine.locks import held

pytestmark = pytest.mark.box


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a running box."""
    directory = tmp_path_factory.mktemp("box")
    with running_box(directory):
        yield directory


def leave_volume(box: Path, cluster: str) -> str:
    """The id of a volume that a cluster of this name has left."""
    settings = control.environment(box)
    session = boto3.Session(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1")
    tags = {"corral:base": "dev", "corral:cluster": cluster}
    specification = {"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    ec2 = session.client("ec2", endpoint_url=settings["AWS_ENDPOINT_URL"])
    volume = ec2.create_volume(Size=50, AvailabilityZone="us-east-1a", TagSpecifications=[specification])
    return str(volume["VolumeId"])


def sweep(box: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return corral("sweep", "--box-dir", str(box), *options)


def test_start_of_a_running_box_says_where_it_runs(box: Path) -> None:
    done = corral("box", "start", "--dir", str(box))
    assert (done.returncode, f"the box runs at {control.status(box).url} " in done.stdout) == (0, True)


def test_status_is_a_document_too(box: Path) -> None:
    real = json.loads(corral("box", "status", "--dir", str(box), "--json").stdout)
    assert (real["state"], real["dir"], real["port"]) == ("running", str(box), control.status(box).port)


def test_shell_that_evaluates_env_talks_to_the_box(box: Path) -> None:
    script = f'eval "$({" ".join(CORRAL)} box env --dir {box})" && echo "$AWS_ENDPOINT_URL|$PULUMI_BACKEND_URL"'
    shell = ["bash", "-euc", script]
    told = subprocess.run(shell, cwd=REPOSITORY, env=clean_environment(box), capture_output=True, text=True, check=True)
    assert told.stdout == f"{control.status(box).url}|file://{box}/pulumi\n"


def test_env_for_fish_sets_the_same_variables(box: Path) -> None:
    posix, fish = (corral("box", "env", "--dir", str(box), "--shell", shell).stdout for shell in ("posix", "fish"))
    names = [line.removeprefix("export ").split("=")[0] for line in posix.splitlines()]
    assert [line.split()[2] for line in fish.splitlines()] == names


def test_env_names_a_pulumi_home_that_holds_the_stand_in_provider(box: Path) -> None:
    variables = json.loads(corral("box", "env", "--dir", str(box), "--json").stdout)
    assert [path.name for path in Path(variables["PULUMI_HOME"]).glob("plugins/*/*")] == ["pulumi-resource-aws"]


def test_env_brings_the_copy_of_the_stacks(box: Path) -> None:
    corral("box", "env", "--dir", str(box))
    assert sorted(file.name for file in (box / "stacks/cluster").glob("Pulumi*")) == [
        "Pulumi.dev.yaml",
        "Pulumi.mixed.yaml",
        "Pulumi.train.yaml",
        "Pulumi.yaml",
    ]


def test_environment_that_is_not_up_is_no_failure(box: Path) -> None:
    done = corral("status", "dev", "--box-dir", str(box))
    assert (done.returncode, "dev  on base dev, us-east-1: not up" in done.stdout) == (0, True)


def test_sweep_finds_what_a_dead_cluster_left_and_deletes_it_when_told(box: Path) -> None:
    volume = leave_volume(box, "dev")
    listed = json.loads(sweep(box, "--json").stdout)["regions"][0]["leftovers"]
    unasked = sweep(box, "--delete")
    done = sweep(box, "--delete", "--yes")
    after = json.loads(sweep(box, "--json").stdout)["regions"][0]["leftovers"]
    assert [(one["id"], one["reason"], one["usd_per_month"]["low"]) for one in listed] == [
        (volume, "cluster dev is not up", 4.0)
    ]
    assert (unasked.returncode, unasked.stderr) == (
        4,
        "corral: nothing was deleted - add --yes to delete without being asked\n",
    )
    assert (done.returncode, done.stdout.splitlines()[-1], after) == (0, "deleted 1 of 1", [])


def test_sweep_leaves_environments_alone_that_the_project_does_not_declare(box: Path) -> None:
    volume = leave_volume(box, "theirs")
    done = sweep(box, "--delete", "--yes")
    foreign = json.loads(sweep(box, "--json").stdout)["regions"][0]["foreign"]
    assert (done.returncode, [one["id"] for one in foreign]) == (0, [volume])


@pytest.fixture
def with_a_wrong_file(tmp_path: Path) -> Path:
    """A project in which `dev` is whole and `train` has a mistake."""
    for kind in ("base", "cluster"):
        shutil.copytree(REPOSITORY / "stacks" / kind, tmp_path / "stacks" / kind)
    (tmp_path / "stacks/cluster/Pulumi.mixed.yaml").unlink()
    wrong = tmp_path / "stacks/cluster/Pulumi.train.yaml"
    wrong.write_text(wrong.read_text().replace("capacity:", "capacty:", 1))
    return tmp_path


WRONG = "stacks/cluster/Pulumi.train.yaml: queues[0].capacty: is not a known field - did you mean 'capacity'?"


def test_sweep_passes_over_a_wrong_stack_file_and_names_it(box: Path, with_a_wrong_file: Path) -> None:
    volumes = {leave_volume(box, "dev"), leave_volume(box, "train")}
    done = sweep(box, "--project", str(with_a_wrong_file), "--json")
    assert (done.returncode, f"corral: {WRONG}" in done.stderr.splitlines(), done.stderr.splitlines()[-1]) == (
        0,
        True,
        "corral: train cannot be read: regions that only it names are left out",
    )
    assert volumes <= {left["id"] for left in json.loads(done.stdout)["regions"][0]["leftovers"]}


def test_sweep_deletes_nothing_beside_a_wrong_stack_file_unless_one_is_named(
    box: Path, with_a_wrong_file: Path
) -> None:
    mine, theirs = leave_volume(box, "dev"), leave_volume(box, "train")
    project = ("--project", str(with_a_wrong_file), "--delete", "--yes")
    refused, named, wrong = sweep(box, *project), sweep(box, "dev", *project), sweep(box, "train", *project)
    left = {one["id"] for one in json.loads(sweep(box, "--json").stdout)["regions"][0]["leftovers"]}
    assert (refused.returncode, refused.stdout, refused.stderr.splitlines()[-1]) == (
        2,
        "",
        "corral: --delete without an environment needs every stack file; name one, such as"
        f" `corral sweep dev --box-dir {box} --delete`",
    )
    assert (named.returncode, wrong.returncode, mine in left, theirs in left) == (0, 2, False, True)


def test_sweep_of_a_project_with_wrong_files_alone_tells_what_is_wrong(box: Path, with_a_wrong_file: Path) -> None:
    (with_a_wrong_file / "stacks/cluster/Pulumi.dev.yaml").unlink()
    done = sweep(box, "--project", str(with_a_wrong_file))
    assert (done.returncode, done.stdout, WRONG in done.stderr) == (2, "", True)


def test_reset_is_not_done_unasked(box: Path) -> None:
    done = corral("box", "reset", "--dir", str(box))
    told = f"corral: the box in {box} was left as it is - add --yes to empty it\n"
    assert (done.returncode, done.stderr) == (4, told)


def test_reset_is_refused_while_a_corral_works_on_a_stack(box: Path) -> None:
    lock = box / "pulumi/.corral/corral-cluster.dev/lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    volume = leave_volume(box, "busy")
    with held(lock, "cluster dev", wait=False, say=print):
        done = corral("box", "reset", "--yes", "--dir", str(box))
    told = f"corral: the box in {box} was left as it is: another corral (process {os.getpid()}, `"
    assert (done.returncode, done.stderr.startswith(told)) == (4, True)
    assert done.stderr.endswith(" is at work on cluster dev - wait until it has ended, or end it\n")
    assert volume in control.inventory(box)["ec2/volume"]


def test_reset_is_refused_while_a_pulumi_works_on_a_stack(box: Path) -> None:
    lock = box / "pulumi/.pulumi/locks/organization/corral-base/dev/1.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    record = {"pid": os.getpid(), "hostname": socket.gethostname(), "username": "me"}
    lock.write_text(json.dumps({**record, "timestamp": datetime.now(UTC).isoformat()}))
    done = corral("box", "reset", "--yes", "--dir", str(box))
    lock.unlink()
    told = f"corral: the box in {box} was left as it is: a Pulumi (process {os.getpid()} of me, since "
    assert (done.returncode, done.stderr.startswith(told)) == (4, True)


def test_reset_is_done_where_a_pulumi_was_killed(tmp_path: Path) -> None:
    lock = tmp_path / "pulumi/.pulumi/locks/organization/corral-base/dev/1.json"
    lock.parent.mkdir(parents=True)
    record = {"pid": 2**22 + 1, "hostname": socket.gethostname(), "username": "me"}  # no process has such a number
    lock.write_text(json.dumps({**record, "timestamp": "2026-11-21T10:00:00+00:00"}))
    done = corral("box", "reset", "--yes", "--dir", str(tmp_path))
    assert (done.returncode, done.stdout, lock.exists()) == (0, f"the box in {tmp_path} is empty\n", False)


def test_killed_box_is_told_from_a_stopped_one(tmp_path: Path) -> None:
    with running_box(tmp_path) as status:
        assert status.pid is not None
        process = os.pidfd_open(status.pid)
        os.kill(status.pid, signal.SIGKILL)
        _await_end(process)
        crashed = corral("status", "dev", "--box-dir", str(tmp_path))
    stopped = corral("box", "status", "--dir", str(tmp_path))
    assert (crashed.returncode, f"the box in {tmp_path} died" in crashed.stderr) == (3, True)
    assert stopped.stdout == f"no box runs in {tmp_path}; `corral box start` starts one\n"


def _await_end(process: int) -> None:
    import select

    select.select([process], [], [], 10)
    os.close(process)
