"""Where both sides of a comparison stand: an AWS in a box without machines, the same launch template, fake commands.

The commands of Slurm only write down how they were called and print a prepared text, so that neither side pays for
slurmctld's work. ParallelCluster starts them through sudo; here that is a shell that goes on with them.
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

from corral.box import control
from corral.model.cluster import ClusterPlan
from corral.model.jsons import to_json
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.parse import parse_base, parse_cluster
from corral.spec.surroundings import Surroundings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "prepare"))

from steps import cache_dir  # noqa: E402 - it is where the set-up put ParallelCluster

REGION, CLUSTER, QUEUE, KIND, ZONE = "us-east-1", "bench", "train", "c7i.large", "bench.corral.internal"
RESOURCE = "c7i"  # ParallelCluster's name for what a queue launches; its nodes are train-dy-c7i-1 and so on
RIVAL = cache_dir() / "parallelcluster" / "bin" / "python"
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
class Ground:
    """What was made. `template`: as deployed.json names it."""

    dir: Path
    environment: Mapping[str, str]
    template: str
    hosted_zone: str


def cluster_plan(nodes: int, queues: int = 1) -> ClusterPlan:
    """A cluster of so many nodes without EFA."""
    around = Surroundings(region=REGION)
    network = {"cidr": "10.64.0.0/16", "zones": ["use1-az1"]}
    base = parse_base({"network": network}, name=CLUSTER, where="base", around=around)
    names = [QUEUE] if queues == 1 else [f"q{number}" for number in range(queues)]
    each = {"instance_type": KIND, "nodes": {"max": nodes // queues}, "capacity": [{"market": "on-demand"}]}
    wishes = {"base": CLUSTER, "queues": [{"name": name, **each} for name in names]}
    around = Surroundings(region=REGION, base=base)
    return plan_cluster(parse_cluster(wishes, name=CLUSTER, where="cluster", around=around), plan_base(base))


def write_programs(place: Path) -> dict[str, str]:
    """The environment in which Slurm's commands are fake ones of this directory."""
    programs = place / "fake" / "bin"
    programs.mkdir(parents=True)
    texts = {"scontrol": _FAKE, "sinfo": _FAKE, "squeue": _FAKE, "sudo": _SUDO, "get-compute-fleet-status.sh": _STATUS}
    for name, text in texts.items():
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    named = ("calls", "nodes", "partitions", "names")
    for name in named:
        (place / name).touch()
    files = {f"BENCH_{name.upper()}": str(place / name) for name in named}
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
    return {**files, "PATH": path, "SLURM_BINARIES_DIR": str(programs)}


def calls_of_slurm(place: Path) -> int:
    """How often a command of Slurm was started."""
    return (place / "calls").read_text(encoding="utf-8").count("\n")


@contextmanager
def new_ground(place: Path) -> Iterator[Ground]:
    """A new box with what both sides need in it; it is stopped, whatever happens."""
    status = control.start(place / "box", machines=False)
    try:
        control.set_quota(place / "box", "L-1216C47A", 1_000_000)  # vCPUs on demand: no answer is a refusal
        environment = {**os.environ, **control.environment(place / "box"), **write_programs(place)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        yield _laid(place, status.url, environment)
    finally:
        control.stop(place / "box")


def _laid(place: Path, url: str | None, environment: Mapping[str, str]) -> Ground:
    keys = {"aws_access_key_id": control.ACCESS_KEY, "aws_secret_access_key": "corral-box"}
    patient = Config(retries={"mode": "standard", "total_max_attempts": 8})

    def aws(service: str) -> Any:
        return boto3.client(service, endpoint_url=url, region_name=REGION, config=patient, **keys)

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
    told = {
        "ImageId": aws("ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"],
        "InstanceType": KIND,
        "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": subnet, "Groups": [group]}],
        "MetadataOptions": {"HttpTokens": "required"},
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    }
    name = f"{CLUSTER}-{QUEUE}-{RESOURCE}"  # ParallelCluster finds it by this
    made = ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=told)
    aws("dynamodb").create_table(
        TableName=CLUSTER,
        KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    zone = aws("route53").create_hosted_zone(
        Name=ZONE, CallerReference="bench", VPC={"VPCRegion": REGION, "VPCId": vpc}
    )
    return Ground(
        dir=place,
        environment=environment,
        template=made["LaunchTemplate"]["LaunchTemplateId"],
        hosted_zone=zone["HostedZone"]["Id"].rpartition("/")[2],
    )


def write_records(ground_dir: Path, plan: ClusterPlan, template: str, hosted_zone: str) -> None:
    """cluster.json and deployed.json, as a head has them."""
    deployed = {
        "account": control.ACCOUNT, "region": REGION, "vpc_id": "vpc-1", "bucket": "bucket", "key_arn": "key",
        "subnets": {}, "security_group": "sg-1", "image_id": "ami-1", "head_interface": "eni-1",
        "state_volume": "vol-1",
        "templates": {offer.key: {"id": template, "version": "1"} for queue in plan.queues for offer in queue.offers},
        "placement_groups": {}, "lustre": {}, "home": None, "hosted_zone": hosted_zone, "munge_secret": "secret",
        "log_group": "log", "topic": "topic", "job_role": "role", "ends_at": None,
    }  # fmt: skip
    (ground_dir / "cluster.json").write_text(to_json(plan), encoding="utf-8")
    (ground_dir / "deployed.json").write_text(json.dumps(deployed), encoding="utf-8")
