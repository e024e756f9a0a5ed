"""What a reader, a user and an admin of clusters may do on a head: roles with the policies of `corral bootstrap`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from calls import HOME, clean_environment, corral
from test_connect import BOOTED_IN_S, launch_head

import boxes
from corral.box.client import BoxStatus
from corral.model.head_report import AutoscalerStatus, HeadStatus
from corral.model.serialization import to_json

pytestmark = pytest.mark.box
ACCOUNT = "123456789012"
STATUS = HeadStatus(
    at=1795300800,
    jobs=(),
    running=0,
    waiting=0,
    backoffs=(),
    disabled_queues=(),
    nodes=(),
    autoscaler=AutoscalerStatus(is_running=True, last_cycle=None, start_command="", log_command=""),
)
# A head with an agent that answers one command, and with a user.
USER_DATA = f"""#!/bin/sh
useradd --create-home ada
mkdir -p /opt/corral/bin
cat >/opt/corral/bin/corral-agent <<'EOF'
#!/bin/sh
[ "$*" = status ] || exit 2
echo '{to_json(STATUS)}'
EOF
chmod +x /opt/corral/bin/corral-agent
touch /booted
"""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A box in which the head of dev and a node of it run; `role`: the settings of a role with the policy."""

    box: BoxStatus
    head: str
    role: Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with boxes.running_box(tmp_path_factory.mktemp("roles") / "box", machines=True) as box:
        head = launch_head(box, USER_DATA)
        assert corral("bootstrap", "--box-dir", str(box.dir), "--yes").returncode == 0
        deadline = time.monotonic() + BOOTED_IN_S
        while corral("connect", "dev", "--box-dir", str(box.dir), "--", "test", "-e", "/booted").returncode:
            assert time.monotonic() < deadline, f"the head has not booted within {BOOTED_IN_S} s"
        yield Cluster(box=box, head=head, role=lambda name: settings(box, name))


def settings(box: BoxStatus, policy: str) -> dict[str, str]:
    """The environment variables of a role with this policy, whose user on the head is ada."""
    iam, trust = boxes.client(box, "iam"), {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    if policy not in {role["RoleName"] for role in iam.list_roles()["Roles"]}:
        tags = [{"Key": "SSMSessionRunAs", "Value": "ada"}] if policy != "untagged" else []
        iam.create_role(RoleName=policy, AssumeRolePolicyDocument=document, Tags=tags)
        name = "user" if policy == "untagged" else policy
        arn = f"arn:aws:iam::{ACCOUNT}:policy/corral-{name}-us-east-1"
        iam.attach_role_policy(RoleName=policy, PolicyArn=arn)
    held = boxes.client(box, "sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/{policy}", RoleSessionName="ann")
    return clean_environment(
        HOME,
        AWS_ENDPOINT_URL=str(box.url),
        AWS_REGION="us-east-1",
        CORRAL_BOX_DIR=str(box.dir),
        AWS_ACCESS_KEY_ID=held["Credentials"]["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=held["Credentials"]["SecretAccessKey"],
        AWS_SESSION_TOKEN=held["Credentials"]["SessionToken"],
    )


def ssm_of(cluster: Cluster, policy: str) -> Any:
    """A client of Systems Manager with the credentials of a role with this policy."""
    return client_of(cluster, policy, "ssm")


def client_of(cluster: Cluster, policy: str, service: str) -> Any:
    """A client with the credentials of a role with this policy."""
    found = cluster.role(policy)
    return boto3.client(
        service,
        endpoint_url=found["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=found["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=found["AWS_SECRET_ACCESS_KEY"],
    )


def connect(cluster: Cluster, policy: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return corral("connect", "dev", *arguments, environment=cluster.role(policy), **more)


@pytest.mark.parametrize("policy", ["reader", "user", "admin"])
def test_everyone_reads_the_status_that_the_head_reports(cluster: Cluster, policy: str) -> None:
    done = corral("status", "dev", "--json", environment=cluster.role(policy))
    assert (done.stderr, json.loads(done.stdout or "{}").get("slurm_problem")) == ("", None)


def test_a_reader_does_not_connect(cluster: Cluster) -> None:
    done = connect(cluster, "reader", "--", "whoami")
    denied = f"ssm:StartSession with corral-shell on the head {cluster.head}"
    message = f"corral: AWS does not allow these credentials {denied}\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", message, 1)


def test_a_user_runs_commands_as_the_user_of_the_tag(cluster: Cluster) -> None:
    done = connect(cluster, "user", "--", "sh", "-c", 'echo "$(whoami) $1"; exit 7', "sh", "a  b")
    assert (done.stdout, done.stderr, done.returncode) == ("ada a  b\n", "", 7)


def test_a_user_has_a_login_shell_of_their_own(cluster: Cluster) -> None:
    done = connect(cluster, "user", input="whoami; pwd; exit 5\n")
    assert (done.stdout, done.returncode) == ("ada\n/home/ada\n", 5)


def test_a_user_without_the_tag_does_not_connect(cluster: Cluster) -> None:
    done = connect(cluster, "untagged", "--", "whoami")
    assert (done.stdout, done.stderr.partition(" - ")[0]) == ("", "corral: your role names no user of the machine")


def test_a_user_does_not_become_root(cluster: Cluster) -> None:
    done = connect(cluster, "user", "--root", "--", "whoami")
    denied = f"ssm:StartSession with corral-root-shell on the head {cluster.head}"
    message = f"corral: AWS does not allow these credentials {denied}\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", message, 1)


def test_an_admin_becomes_root(cluster: Cluster) -> None:
    assert connect(cluster, "admin", "--root", "--", "whoami").stdout == "root\n"


@pytest.mark.parametrize("policy", ["reader", "user", "admin"])
def test_nobody_runs_scripts_as_root(cluster: Cluster, policy: str) -> None:
    with pytest.raises(ClientError) as refused:
        ssm_of(cluster, policy).send_command(
            InstanceIds=[cluster.head], DocumentName="AWS-RunShellScript", Parameters={"commands": ["id"]}
        )
    assert refused.value.response["Error"]["Message"] == (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/{policy}/ann is not authorized to perform: ssm:SendCommand on"
        " resource: arn:aws:ssm:us-east-1::document/AWS-RunShellScript because no identity-based policy allows the"
        " ssm:SendCommand action"
    )


@pytest.mark.parametrize("policy", ["reader", "user", "admin"])
def test_nobody_opens_the_default_shell(cluster: Cluster, policy: str) -> None:
    with pytest.raises(ClientError) as refused:
        ssm_of(cluster, policy).start_session(Target=cluster.head)
    assert refused.value.response["Error"]["Code"] == "AccessDeniedException"


def other_machine(cluster: Cluster, tags: dict[str, str]) -> str:
    """The id of an instance with these tags of corral, which runs no machine."""
    ec2 = boxes.client(cluster.box, "ec2")
    (reservation,) = ec2.describe_instances(InstanceIds=[cluster.head])["Reservations"]
    head = reservation["Instances"][0]
    given = [{"Key": f"corral:{name}", "Value": value} for name, value in {"base": "dev", **tags}.items()]
    made = ec2.run_instances(
        ImageId=head["ImageId"], InstanceType="m7i.large", SubnetId=head["SubnetId"], MinCount=1, MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": given}],
    )  # fmt: skip
    return str(made["Instances"][0]["InstanceId"])


@pytest.mark.parametrize(
    ("policy", "document", "tags", "code"),
    [
        ("user", "corral-shell", {"cluster": "dev", "queue": "train"}, "AccessDeniedException"),
        ("user", "corral-shell", {}, "AccessDeniedException"),
        ("admin", "corral-root-shell", {"cluster": "dev", "queue": "train"}, "TargetNotConnected"),
        ("admin", "corral-root-shell", {}, "AccessDeniedException"),
    ],
)
def test_a_user_reaches_heads_and_an_admin_all_machines_of_clusters(
    cluster: Cluster, policy: str, document: str, tags: dict[str, str], code: str
) -> None:
    machine = other_machine(cluster, tags)
    with pytest.raises(ClientError) as refused:
        ssm_of(cluster, policy).start_session(Target=machine, DocumentName=document)
    assert refused.value.response["Error"]["Code"] == code


def test_a_reader_reads_recorded_histories_and_nothing_else_in_the_bucket(cluster: Cluster) -> None:
    owner, bucket = boxes.client(cluster.box, "s3"), f"corral-dev-{ACCOUNT}-us-east-1"
    owner.create_bucket(Bucket=bucket)
    for key in ("lives/dev/1.json", "clusters/dev/deployed.json"):
        owner.put_object(Bucket=bucket, Key=key, Body=b"{}")
    s3 = client_of(cluster, "reader", "s3")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix="lives/dev/")["Contents"]
    read = s3.get_object(Bucket=bucket, Key=listed[0]["Key"])["Body"].read()
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.get_object(Bucket=bucket, Key="clusters/dev/deployed.json")
    assert ([one["Key"] for one in listed], read) == (["lives/dev/1.json"], b"{}")


@pytest.mark.parametrize("arguments", ["status; id", "apply --json", "drain-all --grace=0 --now", "status\nid", ""])
def test_a_reader_runs_no_other_program(cluster: Cluster, arguments: str) -> None:
    with pytest.raises(ClientError) as refused:
        ssm_of(cluster, "reader").send_command(
            InstanceIds=[cluster.head], DocumentName="corral-query", Parameters={"arguments": [arguments]}
        )
    assert refused.value.response["Error"]["Code"] == "InvalidParameters"


def test_a_reader_does_not_change_a_document(cluster: Cluster) -> None:
    with pytest.raises(ClientError, match="not authorized to perform: ssm:UpdateDocument"):
        ssm_of(cluster, "reader").update_document(Name="corral-query", Content="{}", DocumentVersion="$LATEST")
