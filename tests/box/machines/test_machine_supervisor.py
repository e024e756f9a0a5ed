"""Instances as machines: real namespaces, booted by their own user data, without Pulumi and Slurm.

What can happen side by side is done by machines that are launched together, each for one claim.
"""

from __future__ import annotations

import io
import json
import os
import signal
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from machine_fixtures import MachineBox, running_machine_box, until

import boxes
from corral.box import client
from corral.box.machines.imds_data import access_key
from corral.box.secret import read_secret
from corral.box.state.directory import StateDirectory
from corral.box.vpc.capabilities import Users, probe_host
from corral.render import agent_library

pytestmark = pytest.mark.box
SSHD = "/usr/sbin/sshd"
NODE = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "train-1"}]}]
COUNT = "#!/bin/sh\necho boot >>/var/boots\n"
PER_BOOT = """#!/bin/sh
mkdir -p /var/lib/cloud/scripts/per-boot
printf '#!/bin/sh\\necho again >>/var/boots\\n' >/var/lib/cloud/scripts/per-boot/count
chmod +x /var/lib/cloud/scripts/per-boot/count
echo first >>/var/boots
"""
# As cloud-init: a semaphore says that it has begun, so what removes it makes it begin again.
UNTIL_DONE = """#cloud-config
bootcmd:
  - test -e /var/done || rm -f /var/lib/cloud/instance/sem/config_scripts_user
runcmd:
  - echo boot >>/var/boots
"""
WHO_AM_I = """#!/usr/bin/python3
from urllib.request import Request, urlopen
service = "http://169.254.169.254/latest"
asked = Request(f"{service}/api/token", method="PUT", headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
token = {"X-aws-ec2-metadata-token": urlopen(asked).read().decode()}
names = ("instance-id", "tags/instance/corral:nodes", "iam/security-credentials/")
found = [urlopen(Request(f"{service}/meta-data/{name}", headers=token)).read().decode() for name in names]
head = urlopen(Request(f"{service}/meta-data/instance-id", method="HEAD", headers=token))
open("/var/identity", "w").write(" ".join([*found, str(len(head.read()))]))
"""
WITH_BOTO3 = """
import boto3
session = boto3.Session()
s3 = boto3.client("s3")
s3.put_object(Bucket="artefacts", Key="from-a-machine", Body=b"hello", ExpectedBucketOwner="123456789012")
print(session.get_credentials().method, session.region_name)
"""
FILES = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::artefacts/*"}],
}


@pytest.fixture(scope="module")
def machine_box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineBox]:
    """A box with machines that all tests of this module share; profile `compute` has a role."""
    with running_machine_box(tmp_path_factory.mktemp("machine_box") / "box") as machine_box:
        iam = machine_box.aws("iam")
        iam.create_role(RoleName="nodes", AssumeRolePolicyDocument="{}")
        iam.put_role_policy(RoleName="nodes", PolicyName="files", PolicyDocument=json.dumps(FILES))
        iam.add_role_to_instance_profile(InstanceProfileName="compute", RoleName="nodes")
        machine_box.aws("s3").create_bucket(Bucket="artefacts")
        yield machine_box


@pytest.fixture(scope="module")
def settled(machine_box: MachineBox) -> str:
    """A machine that has booted: tests use it and leave it as it was."""
    instance_id = machine_box.launch(
        WHO_AM_I,
        IamInstanceProfile={"Name": "compute"},
        MetadataOptions={"InstanceMetadataTags": "enabled"},
        TagSpecifications=NODE,
    )
    machine_box.reads(instance_id, "/var/identity")
    return instance_id


def gone(machine_box: MachineBox, instance_id: str) -> bool:
    return until(lambda: not machine_box.runs(instance_id))


def test_an_instance_boots_its_user_data_and_learns_who_it_is(machine_box: MachineBox, settled: str) -> None:
    assert machine_box.reads(settled, "/var/identity") == f"{settled} train-1 nodes 0"


def test_the_credentials_of_the_role_are_good_for_the_api(machine_box: MachineBox, settled: str) -> None:
    path = machine_box.disk(settled) / "opt/library"
    with tarfile.open(fileobj=io.BytesIO(agent_library())) as archive:
        archive.extractall(path)
    done = machine_box.run(settled, "env", "PYTHONPATH=/opt/library", "/usr/bin/python3", "-c", WITH_BOTO3)
    kept = machine_box.aws("s3").get_object(Bucket="artefacts", Key="from-a-machine")["Body"].read()
    assert (done.stderr, done.stdout, kept) == ("", "iam-role us-east-1\n", b"hello")


def test_a_call_of_a_machine_is_logged_with_its_instance_and_the_expected_owner(
    machine_box: MachineBox, settled: str
) -> None:
    key = access_key(read_secret(StateDirectory(machine_box.box.dir)), settled, "nodes")
    keys = {"aws_access_key_id": key, "aws_secret_access_key": "x", "aws_session_token": "x"}
    s3: Any = boto3.Session(**keys, region_name="us-east-1").client("s3", endpoint_url=machine_box.box.url)
    s3.put_object(Bucket="artefacts", Key="owned", Body=b"", ExpectedBucketOwner="123456789012")
    logged = json.loads((machine_box.box.dir / "calls.jsonl").read_text().splitlines()[-1])
    assert (logged["action"], logged["instance"], logged["expected_owner"]) == ("PutObject", settled, "123456789012")


def test_the_host_name_of_a_machine_is_that_of_its_address(machine_box: MachineBox, settled: str) -> None:
    address = machine_box.described(settled)["PrivateIpAddress"].replace(".", "-")
    assert machine_box.run(settled, "hostname").stdout == f"ip-{address}\n"


@pytest.mark.skipif(not Path(SSHD).exists(), reason=f"{SSHD} is missing: apt-get install openssh-server")
@pytest.mark.skipif(probe_host().users is Users.ONE, reason="no sshd for one user: uidmap and a range in /etc/subuid")
def test_each_machine_answers_ssh_with_a_key_of_its_own_which_it_keeps(machine_box: MachineBox, settled: str) -> None:
    other = machine_box.launch(PER_BOOT)
    machine_box.reads(other, "/var/boots")
    keys = [machine_box.reads(name, "/etc/ssh/ssh_host_ed25519_key.pub").split()[:2] for name in (settled, other)]
    machine_box.aws("ec2").reboot_instances(InstanceIds=[other])
    until(lambda: "again" in machine_box.reads(other, "/var/boots"))
    scan = ("ssh-keyscan", "-t", "ed25519", machine_box.described(other)["PrivateIpAddress"])
    assert (machine_box.run(settled, *scan).stdout.split()[1:], keys[0] == keys[1]) == (keys[1], False)


def test_a_first_boot_begins_again_at_the_next_one_without_its_semaphore(machine_box: MachineBox) -> None:
    node = machine_box.launch(UNTIL_DONE)
    assert machine_box.reads(node, "/var/boots") == "boot\n"
    machine_box.aws("ec2").reboot_instances(InstanceIds=[node])
    until(lambda: machine_box.reads(node, "/var/boots") == "boot\nboot\n")


def test_the_accelerators_of_a_type_are_there_by_name(machine_box: MachineBox) -> None:
    node = machine_box.launch(COUNT, InstanceType="p4d.24xlarge")
    assert machine_box.run(node, "sh", "-c", "ls -d /dev/nvidia*").stdout.split() == [
        f"/dev/nvidia{n}" for n in range(8)
    ]


def test_a_terminated_instance_takes_its_machine_and_disk_with_it(machine_box: MachineBox) -> None:
    node = machine_box.launch(COUNT)
    machine_box.reads(node, "/var/boots")
    machine_box.aws("ec2").terminate_instances(InstanceIds=[node])
    gone(machine_box, node)
    assert until(lambda: not machine_box.disk(node).exists())


def test_an_instance_that_ends_before_it_starts_is_no_machine(machine_box: MachineBox) -> None:
    node = machine_box.launch(COUNT, TagSpecifications=NODE)
    machine_box.aws("ec2").terminate_instances(InstanceIds=[node])
    until(lambda: machine_box.state(node) == "terminated")
    time.sleep(3)  # longer than the launch of a node takes
    assert (machine_box.runs(node), machine_box.disk(node).exists()) == (False, False)


@contextmanager
def held(machine_box: MachineBox) -> Iterator[None]:
    """Within it no machine of the machine_box's VPC starts or ends: whoever starts and ends them stands still."""
    vpc_process = processes("corral.box.vpc.namespace_init") & processes(machine_box.launch_network.vpc)
    for pid in vpc_process:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in vpc_process:
            os.kill(pid, signal.SIGCONT)


def test_an_instance_is_pending_until_its_machine_has_started(machine_box: MachineBox, settled: str) -> None:
    with held(machine_box):
        node = machine_box.launch(COUNT)
        time.sleep(1)  # longer than a machine takes that nothing holds
        held_back = (
            machine_box.state(node),
            machine_box.aws("ec2").describe_instance_status(InstanceIds=[node])["InstanceStatuses"],
        )
    until(lambda: machine_box.state(node) == "running")
    assert (held_back, machine_box.runs(node)) == (("pending", []), True)


def test_a_launch_answers_pending_and_an_end_shutting_down(machine_box: MachineBox) -> None:
    made = machine_box.launched(COUNT)
    ended = machine_box.aws("ec2").terminate_instances(InstanceIds=[made["InstanceId"]])["TerminatingInstances"][0]
    assert (made["State"]["Name"], ended["CurrentState"]["Name"]) == ("pending", "shutting-down")


@pytest.mark.parametrize(
    ("call", "meanwhile", "then"),
    [("terminate_instances", "shutting-down", "terminated"), ("stop_instances", "stopping", "stopped")],
)
def test_an_instance_is_shutting_down_until_its_processes_have_ended(
    machine_box: MachineBox, settled: str, call: str, meanwhile: str, then: str
) -> None:
    node = machine_box.launch(COUNT)
    until(lambda: machine_box.state(node) == "running")
    with held(machine_box):
        getattr(machine_box.aws("ec2"), call)(InstanceIds=[node])
        shown = machine_box.described(node)
    until(lambda: machine_box.state(node) == then)
    seen = shown["State"]["Name"], shown["StateReason"]["Code"], len(shown["NetworkInterfaces"]), machine_box.runs(node)
    assert seen == (meanwhile, "Client.UserInitiatedShutdown", 1, False)


def test_what_an_instance_holds_is_not_deleted_while_it_is_shutting_down(machine_box: MachineBox, settled: str) -> None:
    ec2 = machine_box.aws("ec2")
    group = ec2.create_security_group(GroupName="held", Description="held", VpcId=machine_box.launch_network.vpc)[
        "GroupId"
    ]
    node = machine_box.launch(COUNT, SecurityGroupIds=[group])
    until(lambda: machine_box.state(node) == "running")
    with held(machine_box):
        ec2.terminate_instances(InstanceIds=[node])
        with pytest.raises(ClientError) as refused:
            ec2.delete_security_group(GroupId=group)
    until(lambda: machine_box.state(node) == "terminated")
    ec2.delete_security_group(GroupId=group)
    assert refused.value.response["Error"]["Code"] == "DependencyViolation"


@pytest.mark.parametrize(("behaviour", "state"), [("terminate", "terminated"), ("stop", "stopped")])
def test_a_machine_that_powers_off_ends_its_instance_as_the_launch_requests(
    machine_box: MachineBox, behaviour: str, state: str
) -> None:
    node = machine_box.launch("#!/bin/sh\npoweroff\n", InstanceInitiatedShutdownBehavior=behaviour)
    reason = until(lambda: machine_box.described(node)["StateReason"].get("Code"))
    assert (machine_box.state(node), reason) == (state, "Client.InstanceInitiatedShutdown")


def test_a_volume_appears_when_it_is_attached_and_disappears_when_it_is_detached(
    machine_box: MachineBox, settled: str
) -> None:
    ec2 = machine_box.aws("ec2")
    zone = machine_box.described(settled)["Placement"]["AvailabilityZone"]
    volume = ec2.create_volume(Size=1, AvailabilityZone=zone)["VolumeId"]
    ec2.attach_volume(VolumeId=volume, InstanceId=settled, Device="/dev/sdf")
    until(lambda: machine_box.run(settled, "touch", f"/box/volumes/{volume}/kept").returncode == 0)
    ec2.detach_volume(VolumeId=volume)
    until(lambda: machine_box.run(settled, "ls", "/box/volumes").stdout == "")
    assert [file.name for file in (machine_box.box.dir / "machines/volumes" / volume).iterdir()] == ["kept"]


def test_an_instance_that_is_stopped_and_started_keeps_its_disk_and_boots_once(machine_box: MachineBox) -> None:
    node = machine_box.launch(PER_BOOT)
    machine_box.reads(node, "/var/boots")
    machine_box.aws("ec2").stop_instances(InstanceIds=[node])
    until(lambda: machine_box.state(node) == "stopped")
    machine_box.aws("ec2").start_instances(InstanceIds=[node])
    assert until(lambda: machine_box.reads(node, "/var/boots") == "first\nagain\n")


def test_the_console_shows_what_a_machine_printed_and_outlives_it(machine_box: MachineBox) -> None:
    node = machine_box.launch("#!/bin/sh\necho hello console\npoweroff\n")
    until(lambda: machine_box.state(node) == "terminated")
    until(lambda: not machine_box.disk(node).exists())
    assert machine_box.aws("ec2").get_console_output(InstanceId=node)["Output"] == "hello console\n"


def test_the_console_of_an_instance_that_is_no_machine_is_empty(machine_box: MachineBox) -> None:
    assert machine_box.aws("ec2").get_console_output(InstanceId=machine_box.launch(""))["Output"] == ""


def test_user_data_that_mean_nothing_end_the_instance_and_say_why(machine_box: MachineBox) -> None:
    node = machine_box.launch("hello")
    until(lambda: machine_box.state(node) == "terminated")
    sentence = "the user data is neither a script (#!) nor a #cloud-config"
    logged = f"instance {node} cannot start as a machine: {sentence}\n" in (machine_box.box.dir / "box.log").read_text()
    assert (logged, machine_box.described(node)["StateReason"]["Message"]) == (
        True,
        f"Server.InternalError: {sentence}",
    )


@pytest.mark.parametrize("killed", ["unshare", "python"])
def test_instances_of_a_vpc_whose_network_died_boot_again(machine_box: MachineBox, killed: str) -> None:
    ec2 = machine_box.aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.99.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.99.1.0/24", AvailabilityZoneId="use1-az1")["Subnet"]["SubnetId"]
    node = machine_box.launch(COUNT, SubnetId=subnet)
    machine_box.reads(node, "/var/boots")
    first = processes(vpc)
    both = processes("corral.box.vpc.namespace_init") & first
    (process,) = [pid for pid in both if Path(f"/proc/{pid}/comm").read_text().startswith(killed)]
    os.kill(process, signal.SIGKILL)
    until(lambda: machine_box.runs(node) and not first & processes(vpc))
    ec2.terminate_instances(InstanceIds=[node])
    gone(machine_box, node)
    # Its processes have gone before EC2 says so, and till then its interface is in the subnet.
    ec2.get_waiter("instance_terminated").wait(InstanceIds=[node], WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)
    assert until(lambda: processes(vpc) == set())


def test_a_box_that_is_reset_has_no_machines_and_no_data(tmp_path: Path) -> None:
    with running_machine_box(tmp_path / "box") as machine_box:
        machine_box.reads(machine_box.launch(COUNT), "/var/boots")
        client.reset(machine_box.box.dir)
        kinds = ("disks", "volumes", "file-systems", "consoles")
        left = [machine_box.box.dir / "machines" / kind for kind in kinds]
        assert until(lambda: [list(path.iterdir()) for path in left] == [[], [], [], []])


def test_machines_of_two_boxes_with_the_same_addresses_do_not_meet(
    machine_box: MachineBox, settled: str, tmp_path: Path
) -> None:
    with running_machine_box(tmp_path / "other") as other:
        twin = other.launch(WHO_AM_I.replace('"tags/instance/corral:nodes", "iam/security-credentials/"', ""))
        seen = other.reads(twin, "/var/identity"), other.described(twin)["PrivateIpAddress"]
    assert seen == (f"{twin} 0", machine_box.described(settled)["PrivateIpAddress"])


def test_the_temporary_directory_may_have_a_long_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (temporary := tmp_path / ("t" * 100)).mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with running_machine_box(tmp_path / "box") as machine_box:
        assert machine_box.reads(machine_box.launch(COUNT), "/var/boots") == "boot\n"


def test_a_state_directory_may_have_a_long_name(tmp_path: Path) -> None:
    with running_machine_box(tmp_path / ("d" * 200) / "box") as machine_box:
        assert machine_box.reads(machine_box.launch(COUNT), "/var/boots") == "boot\n"


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MachineBox, str, Path]]:
    """A box whose daemon was killed while a machine ran; the machine, and the directory of its sockets."""
    with running_machine_box(tmp_path_factory.mktemp("killed") / "box") as machine_box:
        node = machine_box.launch(PER_BOOT)
        machine_box.reads(node, "/var/boots")
        sockets = (machine_box.box.dir / "machines/sockets").readlink()
        assert machine_box.box.pid
        os.kill(machine_box.box.pid, signal.SIGKILL)
        yield machine_box, node, sockets


def test_a_killed_daemon_leaves_no_process_and_no_mount(killed: tuple[MachineBox, str, Path]) -> None:
    machine_box, _, sockets = killed
    ended = until(lambda: not processes(str(sockets)))
    mounts = Path("/proc/self/mounts").read_text()
    assert (ended, str(machine_box.box.dir) in mounts, str(sockets) in mounts) == (True, False, False)


def test_the_next_daemon_boots_the_machines_of_running_instances(killed: tuple[MachineBox, str, Path]) -> None:
    machine_box, node, sockets = killed
    boxes.start(machine_box.box.dir, machines=True)
    text = until(
        lambda: machine_box.reads(node, "/var/boots") if "again" in machine_box.reads(node, "/var/boots") else ""
    )
    assert (text, sockets.exists()) == ("first\nagain\n", False)


@pytest.mark.parametrize("machines", [True, False])
def test_the_next_daemon_finishes_what_a_killed_one_left_pending_or_stopping(tmp_path: Path, machines: bool) -> None:
    with running_machine_box(tmp_path / "box") as machine_box:
        leaves = machine_box.launch(COUNT)
        until(lambda: machine_box.state(leaves) == "running")
        with held(machine_box):
            machine_box.aws("ec2").terminate_instances(InstanceIds=[leaves])
            comes = machine_box.launch(COUNT)
            before = machine_box.state(comes), machine_box.state(leaves)
            until(lambda: comes.encode() in StateDirectory(machine_box.box.dir).cloud.read_bytes())  # as is the end
            assert machine_box.box.pid
            os.kill(machine_box.box.pid, signal.SIGKILL)
        until(lambda: client.status(machine_box.box.dir).state != "running")
        again = replace(machine_box, box=boxes.start(machine_box.box.dir, machines=machines))
        until(lambda: again.state(leaves) == "terminated" and again.state(comes) == "running")
        assert (before, again.runs(comes)) == (("pending", "shutting-down"), machines)


def processes(word: str) -> set[int]:
    """The processes that have this in their command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except OSError:  # it has ended meanwhile
            continue
    return found - {os.getpid()}
