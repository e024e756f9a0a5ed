"""`corral box` and its subcommands, and the account commands in a box: status and cleanup.

tests/box tests the effects of faults and quotas.
"""

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
from calls import CORRAL, HOME, REPOSITORY, clean_environment, corral

import boxes
from boxes import inventory, running_box
from corral.box import client, control
from corral.engine.backend.stack_locks import hold_lock
from deployer_role import DEPLOYER, create_deployer

pytestmark = pytest.mark.box


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("box")
    with running_box(directory):
        yield directory


@pytest.fixture
def box(started: Path) -> Path:
    """The state directory of a running box with a new account and no faults."""
    client.reset(started)
    control.clear_faults(started)
    return started


def leave_volume(box: Path, cluster: str) -> str:
    """The id of an orphaned volume of a cluster of this name."""
    settings = client.environment(box)
    session = boto3.Session(settings["AWS_ACCESS_KEY_ID"], settings["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1")
    tags = {"corral:base": "dev", "corral:cluster": cluster}
    specification = {"ResourceType": "volume", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
    ec2 = session.client("ec2", endpoint_url=settings["AWS_ENDPOINT_URL"])
    volume = ec2.create_volume(Size=50, AvailabilityZone="us-east-1a", TagSpecifications=[specification])
    return str(volume["VolumeId"])


def cleanup(box: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return corral("cleanup", "--box-dir", str(box), *options)


def test_start_of_a_running_box_shows_its_url(box: Path) -> None:
    done = corral("box", "start", "--dir", str(box))
    assert (done.returncode, f"the box runs at {client.status(box).url} " in done.stdout) == (0, True)


def test_status_has_a_json_document(box: Path) -> None:
    real = json.loads(corral("box", "status", "--dir", str(box), "--json").stdout)
    assert (real["state"], real["dir"], real["port"]) == ("running", str(box), client.status(box).port)


def test_status_shows_the_times_of_an_aws_like_box(tmp_path: Path) -> None:
    where = ("--dir", str(tmp_path / "box"))
    corral("box", "start", *where, "--behaviour", "aws-like", "--speed", "20", "--machines", "none")
    shown = corral("box", "status", *where).stdout
    corral("box", "stop", *where)
    assert "  a new Lustre file system is creating for 18 s" in shown.splitlines()


def test_a_speed_without_times_is_wrong_input(tmp_path: Path) -> None:
    done = corral("box", "start", "--dir", str(tmp_path / "box"), "--speed", "20")
    assert (done.returncode, "--speed 20 needs --behaviour aws-like" in done.stderr) == (2, True)


def test_shell_that_evaluates_env_uses_the_box(box: Path) -> None:
    script = f'eval "$({" ".join(CORRAL)} box env --dir {box})" && echo "$AWS_ENDPOINT_URL|$PULUMI_BACKEND_URL"'
    shell = ["bash", "-euc", script]
    done = subprocess.run(shell, cwd=REPOSITORY, env=clean_environment(box), capture_output=True, text=True, check=True)
    assert done.stdout == f"{client.status(box).url}|file://{box}/pulumi\n"


def test_env_for_fish_sets_the_same_variables(box: Path) -> None:
    posix, fish = (corral("box", "env", "--dir", str(box), "--shell", shell).stdout for shell in ("posix", "fish"))
    names = [line.removeprefix("export ").split("=")[0] for line in posix.splitlines()]
    assert [line.split()[2] for line in fish.splitlines()] == names


def test_env_of_a_role_has_the_credentials_of_a_session_of_it(box: Path) -> None:
    create_deployer(boxes.client(client.status(box), "iam"))
    settings = json.loads(corral("box", "env", "--dir", str(box), "--role", DEPLOYER, "--json").stdout)
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    session = boto3.Session(*(settings[name] for name in names), region_name="us-east-1")
    identity = session.client("sts", endpoint_url=settings["AWS_ENDPOINT_URL"]).get_caller_identity()
    assert (identity["Arn"], settings["CORRAL_BOX_ROLE"]) == (
        "arn:aws:sts::123456789012:assumed-role/deployer/corral",
        DEPLOYER,
    )


def test_env_of_a_role_that_does_not_exist_is_refused(box: Path) -> None:
    done = corral("box", "env", "--dir", str(box), "--role", "nobody")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: the box has no role 'nobody' - create it with `aws iam create-role`, see docs/bootstrap.md\n",
    )


def test_a_command_has_the_permissions_of_the_role_that_a_variable_names(box: Path) -> None:
    create_deployer(boxes.client(client.status(box), "iam"), policies=())
    done = corral("cleanup", "--box-dir", str(box), environment=clean_environment(HOME, CORRAL_BOX_ROLE=DEPLOYER))
    named = "assumed-role/deployer/corral do not allow ec2:DescribeInstances"
    assert (done.returncode, named in done.stderr) == (3, True)


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


def test_status_of_an_environment_that_is_not_up_exits_with_0(box: Path) -> None:
    done = corral("status", "dev", "--box-dir", str(box))
    assert (done.returncode, "dev  on base dev, us-east-1: not up" in done.stdout) == (0, True)


def test_cleanup_finds_orphans_and_deletes_them_with_yes(box: Path) -> None:
    volume = leave_volume(box, "dev")
    listed = json.loads(cleanup(box, "--json").stdout)["regions"][0]["orphans"]
    unasked = cleanup(box, "--delete")
    done = cleanup(box, "--delete", "--yes")
    after = json.loads(cleanup(box, "--json").stdout)["regions"][0]["orphans"]
    assert [(one["id"], one["reason"], one["usd_per_month"]["low"]) for one in listed] == [
        (volume, "cluster dev is not up", 4.0)
    ]
    assert (unasked.returncode, unasked.stderr) == (
        4,
        "corral: nothing was deleted - add --yes to skip the confirmation\n",
    )
    assert (done.returncode, done.stdout.splitlines()[-1], after) == (0, "deleted 1 of 1", [])


def test_cleanup_spares_environments_of_other_projects(box: Path) -> None:
    volume = leave_volume(box, "theirs")
    done = cleanup(box, "--delete", "--yes")
    foreign = json.loads(cleanup(box, "--json").stdout)["regions"][0]["foreign"]
    assert (done.returncode, [one["id"] for one in foreign]) == (0, [volume])


@pytest.fixture
def with_a_wrong_file(tmp_path: Path) -> Path:
    """A project in which `dev` is valid and `train` has an error."""
    for kind in ("base", "cluster"):
        shutil.copytree(REPOSITORY / "stacks" / kind, tmp_path / "stacks" / kind)
    (tmp_path / "stacks/cluster/Pulumi.mixed.yaml").unlink()
    wrong = tmp_path / "stacks/cluster/Pulumi.train.yaml"
    wrong.write_text(wrong.read_text().replace("capacity:", "capacty:", 1))
    return tmp_path


WRONG = "stacks/cluster/Pulumi.train.yaml: queues[0].capacty: unknown field - did you mean 'capacity'?"


def test_cleanup_skips_an_invalid_stack_file_and_names_it(box: Path, with_a_wrong_file: Path) -> None:
    volumes = {leave_volume(box, "dev"), leave_volume(box, "train")}
    done = cleanup(box, "--project", str(with_a_wrong_file), "--json")
    assert (done.returncode, f"corral: {WRONG}" in done.stderr.splitlines(), done.stderr.splitlines()[-1]) == (
        0,
        True,
        "corral: train cannot be read: regions that only these environments use are skipped",
    )
    assert volumes <= {left["id"] for left in json.loads(done.stdout)["regions"][0]["orphans"]}


def test_cleanup_with_an_invalid_stack_file_needs_an_env_to_delete(box: Path, with_a_wrong_file: Path) -> None:
    mine, theirs = leave_volume(box, "dev"), leave_volume(box, "train")
    project = ("--project", str(with_a_wrong_file), "--delete", "--yes")
    refused, named, wrong = cleanup(box, *project), cleanup(box, "dev", *project), cleanup(box, "train", *project)
    left = {one["id"] for one in json.loads(cleanup(box, "--json").stdout)["regions"][0]["orphans"]}
    assert (refused.returncode, refused.stdout, refused.stderr.splitlines()[-1]) == (
        2,
        "",
        "corral: --delete needs an ENV while a stack file has errors, e.g."
        f" `corral cleanup dev --box-dir {box} --delete`",
    )
    assert (named.returncode, wrong.returncode, mine in left, theirs in left) == (0, 2, False, True)


def test_cleanup_with_only_invalid_stack_files_shows_the_errors(box: Path, with_a_wrong_file: Path) -> None:
    (with_a_wrong_file / "stacks/cluster/Pulumi.dev.yaml").unlink()
    done = cleanup(box, "--project", str(with_a_wrong_file))
    assert (done.returncode, done.stdout, WRONG in done.stderr) == (2, "", True)


# --- faults


def fault(box: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return corral("box", "fault", *words, "--dir", str(box))


def test_fault_shows_the_active_fault(box: Path) -> None:
    done = fault(box, "no-capacity", "--type", "p5.48xlarge", "--zone", "use1-az1", "--count", "3")
    assert done.stdout == "active: no-capacity p5.48xlarge us-east-1b, remaining 0, 3 more times\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("fail-after-launch", "--after", "5s"), "fail-after-launch, reason capacity, after 5 s"),
        (("throttle", "--market", "spot"), "throttle spot, call ec2:RunInstances"),
        (("refuse", "--code", "X", "--count", "1"), "refuse, call ec2:RunInstances, code X, 1 more times"),
        (("slow-boot", "--after", "2m"), "slow-boot, after 120 s"),
        (("hang-boot", "--target", "train"), "hang-boot train"),
        (("delayed-visibility",), "delayed-visibility, after 10 s"),
        (("request-tags-only",), "request-tags-only"),
        (("stale-tags",), "stale-tags"),
        (("disabled-region", "ap-east-1"), "disabled-region, region ap-east-1"),
        (("slow-termination", "--market", "capacity-block"), "slow-termination capacity-block, after 300 s"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_each_active_fault_is_one_line(box: Path, words: tuple[str, ...], line: str) -> None:
    fault(box, *words)
    assert fault(box, "list").stdout == f"{line}\n"


def test_newer_images_are_published_at_once(box: Path) -> None:
    done = fault(box, "new-image", "--snapshot-gib", "120")
    assert (done.stdout, fault(box, "list").stdout) == ("newer images in us-east-1\n", "no active faults\n")


def test_the_size_of_a_snapshot_is_a_number_of_gib(box: Path) -> None:
    done = fault(box, "new-image", "--snapshot-gib", "large")
    sentence = "corral: 'large' is not a snapshot's size - expected GiB from 1 to 16384"
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, sentence)


def test_a_policy_of_an_organization_is_read_from_a_file(box: Path, tmp_path: Path) -> None:
    file = tmp_path / "no-p5.json"
    file.write_text('{"Statement": {"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "*"}}')
    assert fault(box, "service-control-policy", str(file)).stdout == "active: service-control-policy, name no-p5\n"


def test_a_policy_that_is_not_json_is_wrong_input(box: Path, tmp_path: Path) -> None:
    (tmp_path / "no-p5.json").write_text("no p5")
    done = fault(box, "service-control-policy", str(tmp_path / "no-p5.json"))
    assert (done.returncode, done.stderr.startswith("corral: the policy is not JSON: ")) == (2, True)


@pytest.mark.parametrize("kind", ["spot-notice", "rebalance", "kill", "freeze", "network-cut", "block-end"])
def test_unknown_machine_is_wrong_input(box: Path, kind: str) -> None:
    done = fault(box, kind, "train-9")
    assert (done.returncode, done.stderr.endswith("is 'train-9' - `corral status` lists nodes and instances\n")) == (
        2,
        True,
    )


def test_fault_of_a_missing_head_is_wrong_input(box: Path) -> None:
    done = fault(box, "kill-head")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: no running head - `corral status` lists nodes and instances\n",
    )


def test_unknown_market_is_wrong_input(box: Path) -> None:
    done = fault(box, "no-capacity", "--market", "sport")
    message = "corral: unknown market 'sport' - expected one of spot, on-demand, reservation, capacity-block\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_clearing_an_inactive_fault_is_wrong_input(box: Path) -> None:
    done = fault(box, "clear", "throttle")
    message = "corral: no throttle is active - `corral box fault list` shows the active faults\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_clearing_a_one_time_fault_is_wrong_input(box: Path) -> None:
    done = fault(box, "clear", "kill")
    assert (done.returncode, done.stderr.startswith("corral: 'kill' cannot be cleared - expected all, delayed-")) == (
        2,
        True,
    )


def test_clear_shows_the_number_of_faults_cleared(box: Path) -> None:
    fault(box, "throttle")
    assert [fault(box, "clear").stdout for _ in range(2)] == ["1 fault cleared\n", "no active faults\n"]


def test_fault_list_has_a_json_document(box: Path) -> None:
    fault(box, "refuse", "--code", "VcpuLimitExceeded", "--duration", "1h")
    document = json.loads(fault(box, "list", "--json").stdout)
    assert (document["schema"], document["faults"][0]["settings"]["code"]) == ("corral.faults/2", "VcpuLimitExceeded")


def test_status_shows_active_faults(box: Path) -> None:
    fault(box, "delayed-visibility")
    assert "\nactive faults: delayed-visibility, after 10 s\n" in corral("box", "status", "--dir", str(box)).stdout


# --- quotas


def quota(box: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return corral("box", "quota", *words, "--dir", str(box))


def test_changed_quota_is_shown_with_the_default_of_aws(box: Path) -> None:
    line = "L-417A185B  ec2                    192  Running On-Demand P instances (AWS's default is 0)\n"
    assert quota(box, "L-417A185B", "192").stdout == line


def test_quota_is_set_in_one_region_alone(box: Path) -> None:
    quota(box, "L-F678F1CE", "9", "--region", "us-west-2")
    line = "L-F678F1CE  vpc                      5  VPCs per Region\n"
    assert quota(box, "L-F678F1CE").stdout == line


def test_all_quotas_are_listed(box: Path) -> None:
    lines = quota(box).stdout.splitlines()
    assert (len(lines), lines[0]) == (52, "L-309BACF6  ebs                 100000  Snapshots per Region")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("L-417A185C", "1"),
            "unknown quota: 'L-417A185C' is not in the catalog - did you mean 'L-417A185B'?",
        ),
        (("L-417A185C",), "unknown quota: 'L-417A185C' is not in the catalog - did you mean 'L-417A185B'?"),
        (("L-417A185B", "many"), "invalid quota value 'many' - expected a number of 0 or more"),
        (("L-417A185B", "inf"), "invalid quota value 'inf' - expected a number of 0 or more"),
        (
            ("L-417A185B", "1", "--region", "us-est-1"),
            "unknown region: 'us-est-1' is not in the catalog - did you mean 'us-east-1'",
        ),
    ],
)
def test_invalid_quota_region_or_value_is_wrong_input(box: Path, words: tuple[str, ...], sentence: str) -> None:
    done = quota(box, *words)
    assert (done.returncode, done.stderr.count("\n"), sentence in done.stderr) == (2, 1, True)


# --- reset, and stopped boxes


def test_reset_needs_yes(box: Path) -> None:
    done = corral("box", "reset", "--dir", str(box))
    message = f"corral: the box in {box} was not changed - add --yes to empty it\n"
    assert (done.returncode, done.stderr) == (4, message)


def test_reset_is_refused_while_another_corral_runs(box: Path) -> None:
    lock = box / "pulumi/.corral/corral-cluster.dev/lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    volume = leave_volume(box, "busy")
    with hold_lock(lock, "cluster dev", wait=False, write=print):
        done = corral("box", "reset", "--yes", "--dir", str(box))
    message = f"corral: the box in {box} was not changed: another corral (process {os.getpid()}, `"
    assert (done.returncode, done.stderr.startswith(message)) == (4, True)
    assert done.stderr.endswith(" is working on cluster dev - wait for the process to end, or stop it\n")
    assert volume in inventory(box)["ec2/volume"]


def test_reset_is_refused_while_pulumi_runs(box: Path) -> None:
    lock = box / "pulumi/.pulumi/locks/organization/corral-base/dev/1.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    record = {"pid": os.getpid(), "hostname": socket.gethostname(), "username": "me"}
    lock.write_text(json.dumps({**record, "timestamp": datetime.now(UTC).isoformat()}))
    done = corral("box", "reset", "--yes", "--dir", str(box))
    lock.unlink()
    message = f"corral: the box in {box} was not changed: Pulumi (process {os.getpid()} of me, since "
    assert (done.returncode, done.stderr.startswith(message)) == (4, True)


def test_reset_ignores_the_lock_of_a_killed_pulumi(tmp_path: Path) -> None:
    lock = tmp_path / "pulumi/.pulumi/locks/organization/corral-base/dev/1.json"
    lock.parent.mkdir(parents=True)
    record = {"pid": 2**22 + 1, "hostname": socket.gethostname(), "username": "me"}  # above the maximum process id
    lock.write_text(json.dumps({**record, "timestamp": "2026-11-21T10:00:00+00:00"}))
    done = corral("box", "reset", "--yes", "--dir", str(tmp_path))
    assert (done.returncode, done.stdout, lock.exists()) == (0, f"the box in {tmp_path} is empty\n", False)


def test_killed_box_is_distinguished_from_a_stopped_one(tmp_path: Path) -> None:
    with running_box(tmp_path) as status:
        assert status.pid is not None
        process = os.pidfd_open(status.pid)
        os.kill(status.pid, signal.SIGKILL)
        _await_end(process)
        crashed = corral("status", "dev", "--box-dir", str(tmp_path))
    stopped = corral("box", "status", "--dir", str(tmp_path))
    assert (crashed.returncode, f"the box in {tmp_path} has crashed" in crashed.stderr) == (3, True)
    assert stopped.stdout == f"no box runs in {tmp_path} - `corral box start` starts one\n"


def _await_end(process: int) -> None:
    import select

    select.select([process], [], [], 10)
    os.close(process)
