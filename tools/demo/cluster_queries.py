"""What the demo reads of the cluster `dev`: instances from EC2, files from S3, nodes and jobs from Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from session import DemoSession

HEAD = ("connect", "dev", "--box", "--")  # runs what follows on the head
DATA_BUCKET = "corral-example-corpus"  # stands for the user's own data


def head(demo: DemoSession) -> tuple[str, str, str]:
    """The head's instance, address and state volume."""
    (instance,) = running_instances(demo, {"Name": "tag:Name", "Values": ["corral-dev-head"]})
    volumes = {m["DeviceName"]: m["Ebs"]["VolumeId"] for m in instance["BlockDeviceMappings"]}
    return instance["InstanceId"], instance["PrivateIpAddress"], volumes["/dev/sdf"]


def running_instances(demo: DemoSession, *filters: Mapping[str, object]) -> list[Any]:
    """The pending and running instances that match the filters."""
    live = {"Name": "instance-state-name", "Values": ["running", "pending"]}
    pages = demo.client("ec2").get_paginator("describe_instances").paginate(Filters=[live, *filters])
    return [instance for page in pages for held in page["Reservations"] for instance in held["Instances"]]


def compute_instances(demo: DemoSession) -> list[Any]:
    """The running instances of nodes."""
    return [one for one in running_instances(demo) if tag(one, "corral:nodes")]


def compute_ids(demo: DemoSession) -> list[str]:
    """Their ids, sorted."""
    return sorted(one["InstanceId"] for one in compute_instances(demo))


def tag(instance: Any, key: str) -> str:
    """The value of an instance's tag; empty without one."""
    return next((str(one["Value"]) for one in instance.get("Tags", ()) if one["Key"] == key), "")


def rendered_file(demo: DemoSession, name: str) -> str:
    """The text of one of the cluster's files in the base's bucket."""
    s3 = demo.client("s3")
    (bucket,) = (one["Name"] for one in s3.list_buckets()["Buckets"] if one["Name"] != DATA_BUCKET)
    return str(s3.get_object(Bucket=bucket, Key=f"clusters/dev/{name}")["Body"].read().decode())


def queue(demo: DemoSession) -> tuple[str, str]:
    """The queue's nodes in slurmctld, and after how many idle seconds they power down."""
    output = demo.query(*HEAD, "scontrol", "--oneliner", "show", "partition", "train")
    fields = _fields(output)
    return fields.get("Nodes", ""), fields.get("SuspendTime", "")


def expand_nodes(demo: DemoSession, nodes: str) -> list[str]:
    """The names in a node list such as train-[1-2]."""
    return demo.query(*HEAD, "scontrol", "show", "hostnames", nodes).split()


def nodes_and_jobs(demo: DemoSession) -> str:
    """The state of each node, and the accounting record of each job."""
    nodes, jobs = "sinfo --noheader --Node --format='%N %T'", "sacct -XanP --format=JobID,State,NodeList"
    return demo.query(*HEAD, "sh", "-c", f"{nodes} && {jobs}")


def wait_for_job_end(demo: DemoSession, job: int) -> Mapping[str, str]:
    """Wait until the job ends; return its fields in `scontrol show job`."""
    listed = ("squeue", "--noheader", "--jobs", str(job), "--states=all", "--format=%T")
    over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL")
    demo.wait_until(lambda: demo.query(*HEAD, *listed).strip() in over, f"job {job} ends")
    return _fields(demo.query(*HEAD, "scontrol", "--oneliner", "show", "job", str(job)))


def _fields(line: str) -> Mapping[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in line.split())}
