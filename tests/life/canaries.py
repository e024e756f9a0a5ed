"""Whether the secrets of a life are anywhere but where they belong: files, objects, logs, tags, processes, output."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from clusters import Cluster

from corral.box import client
from corral.model.job_role import URI

# The account itself and its keys, which no one but the box reads.
_OF_THE_BOX = ("box/cloud.pickle", "box/secret")
_MACHINE = re.compile(r"box/machines/disks/[^/]+/")
_IMDS = "http://169.254.169.254/latest"


def canaries(cluster: Cluster, node: str) -> Mapping[str, bytes]:
    """The secrets of a running cluster, by what they are. `node`: the instance of a running node."""
    munge = cluster.life.client("secretsmanager").get_secret_value(SecretId=f"corral/{cluster.name}/munge")
    job = json.loads(cluster.on(node, "curl", "--silent", URI))
    machine = {kind: _role_credentials(cluster, id) for kind, id in (("head", cluster.head()), ("node", node))}
    settings = client.environment(cluster.life.box.dir)
    return {
        "munge key": munge["SecretBinary"],
        "job role's secret key": job["SecretAccessKey"].encode(),
        "job role's token": job["Token"].encode(),
        **{f"{kind}'s secret key": held["SecretAccessKey"].encode() for kind, held in machine.items()},
        **{f"{kind}'s token": held["Token"].encode() for kind, held in machine.items()},
        "secret key of who deploys": settings["AWS_SECRET_ACCESS_KEY"].encode(),
    }


def _role_credentials(cluster: Cluster, instance: str | None) -> Mapping[str, str]:
    """What root of a machine gets from its metadata service."""
    script = f"""
token=$(curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' {_IMDS}/api/token)
get() {{ curl -s -H "X-aws-ec2-metadata-token: $token" {_IMDS}/meta-data/iam/security-credentials/$1; }}
get "$(get)"
"""
    found: Mapping[str, str] = json.loads(cluster.on(instance, "sh", "-c", script))
    return found


def locations(cluster: Cluster, secrets: Mapping[str, bytes], outputs: Sequence[str]) -> Mapping[str, list[str]]:
    """Where each secret is: of machines, the path without the machine's name."""
    found: dict[str, set[str]] = {name: set() for name in secrets}
    forms = {name: _forms(secret) for name, secret in secrets.items()}
    for origin, content in _contents(cluster, outputs):
        for name, written in forms.items():
            if any(form in content for form in written):
                found[name].add(_MACHINE.sub("machine: /", origin))
    return {name: sorted(where) for name, where in found.items()}


def _forms(secret: bytes) -> tuple[bytes, ...]:
    """The secret as it is, in hex, and in base64 at each of the three offsets within a longer text."""
    shifted = (base64.b64encode(b"\0" * shift + secret)[4 if shift else 0 :][: len(secret)] for shift in range(3))
    return (secret, secret.hex().encode(), *shifted)


def _contents(cluster: Cluster, outputs: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    directory = cluster.life.directory
    for number, text in enumerate(outputs):
        yield f"output {number}", text.encode()
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        if path.is_file() and not path.is_symlink() and name not in _OF_THE_BOX:
            yield name, _unpacked(path.read_bytes())
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = line.read_bytes()
        except OSError:
            continue  # the process has ended
        yield f"command line of {Path(command.partition(bytes(1))[0].decode(errors='replace')).name}", command
    yield from _in_the_account(cluster)


def _in_the_account(cluster: Cluster) -> Iterator[tuple[str, bytes]]:
    """What readers of the account see: objects, logs, user data, parameters, tags."""
    s3, logs, ec2, ssm = (cluster.life.client(service) for service in ("s3", "logs", "ec2", "ssm"))
    for bucket in s3.list_buckets()["Buckets"]:
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            for one in page.get("Contents", ()):
                content = s3.get_object(Bucket=bucket["Name"], Key=one["Key"])["Body"].read()
                yield f"s3: {one['Key']}", _unpacked(content)
    for group in logs.describe_log_groups()["logGroups"]:
        events = logs.filter_log_events(logGroupName=group["logGroupName"])["events"]
        yield f"logs: {group['logGroupName']}", json.dumps(events).encode()
    instances = [i for r in ec2.describe_instances()["Reservations"] for i in r["Instances"]]
    yield "instances", json.dumps(instances, default=str).encode()
    for one in instances:
        data = ec2.describe_instance_attribute(InstanceId=one["InstanceId"], Attribute="userData")["UserData"]
        yield "user data", base64.b64decode(data.get("Value", ""))
    parameters = ssm.get_parameters_by_path(Path="/", Recursive=True)["Parameters"]
    yield "parameters", json.dumps(parameters, default=str).encode()


def _unpacked(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
