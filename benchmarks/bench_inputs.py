"""The inputs of both sides of a comparison: a box without machines, the same launch template, fake commands.

Slurm's commands only record their calls and print a prepared text, so neither side pays for slurmctld's work.
ParallelCluster starts them through sudo, which is replaced by a shell script that runs its arguments.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from corral.box import account, client, control
from corral.box.switches import Machines
from corral.model.cluster import ClusterPlan
from corral.model.serialization import to_json
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.loader import parse_base, parse_cluster
from corral.spec.validation_context import ValidationContext

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "prepare"))

from steps import cache_dir  # noqa: E402 - `make bench` installs ParallelCluster there

REGION, CLUSTER, QUEUE, INSTANCE_TYPE, ZONE = "us-east-1", "bench", "train", "c7i.large", "bench.corral.internal"
RESOURCE = "c7i"  # ParallelCluster's name for what a queue launches; its nodes are train-dy-c7i-1 and so on
PARALLELCLUSTER = cache_dir() / "parallelcluster" / "bin" / "python"
_FAKE = """#!/bin/sh
echo "${0##*/} $*" >> "$BENCH_CALLS"
case "$*" in
*show*nodes*) cat "$BENCH_NODES" ;;
*show*partitions*) cat "$BENCH_PARTITIONS" ;;
*-o*%N*) cat "$BENCH_NAMES" ;;
esac
"""
_SUDO = '#!/bin/sh\nexec "$@"\n'
_STATUS = """#!/bin/sh
echo '{"status": "RUNNING"}'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchInputs:
    """The inputs. `template`: the launch template's id in deployed.json."""

    dir: Path
    environment: Mapping[str, str]
    template: str
    hosted_zone: str


def cluster_plan(nodes: int, queues: int = 1) -> ClusterPlan:
    """A cluster with this many nodes, without EFA."""
    context = ValidationContext(region=REGION)
    network = {"cidr": "10.64.0.0/16", "zones": ["use1-az1"]}
    base = parse_base({"network": network}, name=CLUSTER, where="base", context=context)
    names = [QUEUE] if queues == 1 else [f"q{number}" for number in range(queues)]
    each = {"instance_type": INSTANCE_TYPE, "nodes": {"max": nodes // queues}, "capacity": [{"market": "on-demand"}]}
    spec = {"base": CLUSTER, "queues": [{"name": name, **each} for name in names]}
    context = ValidationContext(region=REGION, base=base)
    return plan_cluster(parse_cluster(spec, name=CLUSTER, where="cluster", context=context), plan_base(base))


def write_programs(directory: Path) -> dict[str, str]:
    """Write fake Slurm commands into the directory; return the variables that make programs use them."""
    programs = directory / "fake" / "bin"
    programs.mkdir(parents=True)
    texts = {"scontrol": _FAKE, "sinfo": _FAKE, "squeue": _FAKE, "sudo": _SUDO, "get-compute-fleet-status.sh": _STATUS}
    for name, text in texts.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    outputs = ("calls", "nodes", "partitions", "names")
    for name in outputs:
        (directory / name).touch()
    files = {f"BENCH_{name.upper()}": str(directory / name) for name in outputs}
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    return {**files, "PATH": path, "SLURM_BINARIES_DIR": str(programs)}


def count_slurm_calls(directory: Path) -> int:
    """The number of calls of Slurm's commands."""
    return (directory / "calls").read_text(encoding="utf-8").count("\n")


@contextmanager
def new_inputs(directory: Path) -> Iterator[BenchInputs]:
    """A new box with the inputs of both sides, stopped at the end in any case."""
    status = client.start(directory / "box", machines=Machines.NONE)
    try:
        control.set_quota(directory / "box", "L-1216C47A", 1_000_000)  # on-demand vCPUs: enough that no launch fails
        environment = {**os.environ, **client.environment(directory / "box"), **write_programs(directory)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield _create_resources(directory, status.url, environment)
    finally:
        client.stop(directory / "box")


def _create_resources(directory: Path, url: str | None, environment: Mapping[str, str]) -> BenchInputs:
    session = boto3.Session(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=REGION)
    retries = Config(retries={"mode": "standard", "total_max_attempts": 8})

    def aws(service: str) -> Any:
        return session.client(service, endpoint_url=url, config=retries)

    ec2 = aws("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.0.0/18", AvailabilityZoneId="use1-az1")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    tags = {
        "corral:cluster": CLUSTER,
        "corral:offer": "offer",
        "parallelcluster:cluster-name": CLUSTER,
        "parallelcluster:node-type": "Compute",
    }
    template_data = {
        "ImageId": aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"],
        "InstanceType": INSTANCE_TYPE,
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}],
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    }
    name = f"{CLUSTER}-{QUEUE}-{RESOURCE}"  # ParallelCluster finds it by this name
    created = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=template_data)
    aws("dynamodb").create_table(
        TableName=CLUSTER,
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    zone = aws("route53").create_hosted_zone(
        Name=ZONE, CallerReference="bench", VPC={"VPCRegion": REGION, "VPCId": vpc}
    )
    return BenchInputs(
        dir=directory,
        environment=environment,
        template=created["LaunchTemplate"]["LaunchTemplateId"],
        hosted_zone=zone["HostedZone"]["Id"].rpartition("/")[2],
    )


def write_records(inputs_dir: Path, plan: ClusterPlan, template: str, hosted_zone: str) -> None:
    """Write cluster.json and deployed.json, as on a head."""
    deployed = {
        "account": account.ACCOUNT, "region": REGION, "vpc_id": "vpc-1", "bucket": "bucket", "key_arn": "key",
        "subnets": {}, "security_group": "sg-1", "image_id": "ami-1", "head_interface": "eni-1",
        "state_volume": "vol-1",
        "templates": {offer.key: {"id": template, "version": "1"} for queue in plan.queues for offer in queue.offers},
        "placement_groups": {}, "lustre": {}, "home": None, "hosted_zone": hosted_zone, "munge_secret": "secret",
        "log_group": "log", "topic": "topic", "job_role": "role", "ends_at": None,
    }  # fmt: skip
    (inputs_dir / "cluster.json").write_text(to_json(plan), encoding="utf-8")
    (inputs_dir / "deployed.json").write_text(json.dumps(deployed), encoding="utf-8")
