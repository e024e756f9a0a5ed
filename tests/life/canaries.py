"""The secrets of a life, and where they are: files, objects, logs, tags, processes, pages, crash reports, output.

A new secret is a line in `secrets_of`. It has to be in the locations that the line names, and nowhere else.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusters import Cluster

from corral.box import client
from corral.model.job_role import URI
from corral.model.monitoring import ALERTMANAGER_DIR, NODE_TOKEN, PAGERDUTY_KEY, PROMETHEUS_DIR, SLACK_URL
from secret_search import secrets_in

# The account itself and its keys, which no one but the box reads.
ACCOUNT, CONTROL = "box/cloud.pickle", "box/secret"
_HOST_KEY, _USERS_KEY = "/etc/ssh/ssh_host_ed25519_key", ".ssh/id_corral"
_IN_HOME = f"home: admin/{_USERS_KEY}"  # which outlives a cluster
_MACHINE = re.compile(r"box/machines/disks/[^/]+/")
_HOME = re.compile(r"box/machines/file-systems/[^/]+/")
_SERVER = re.compile(r"jpserver-\d+")  # by the number of its process
_IMDS = "http://169.254.169.254/latest"
# A command of corral that meets what nobody expected, with a report for the user to send in.
_CRASHES = """
import sys
import botocore.client
def fails(*_, **__):
    raise RuntimeError("nobody expected this")
botocore.client.BaseClient._make_api_call = fails
from corral.cli import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret, and where it is found while its cluster runs: on machines, the path without the machine's name.

    `afterwards`: those of the locations where it is still found when the cluster is gone.
    """

    value: bytes
    locations: tuple[str, ...]
    afterwards: tuple[str, ...] = ()


def secrets_of(cluster: Cluster, node: str) -> Mapping[str, Secret]:
    """The secrets of a running cluster, by what they are. `node`: the instance of a running node."""
    head = cluster.head()
    held = {kind: json.loads(_credentials(cluster, id)) for kind, id in (("head", head), ("node", node))}
    job = json.loads(cluster.on(node, "curl", "--silent", URI))
    deployer = client.environment(cluster.life.box.dir)["AWS_SECRET_ACCESS_KEY"]
    control = (cluster.life.box.dir / "secret").read_bytes().strip()
    munge = _stored(cluster, f"corral/{cluster.name}/munge")
    found = {
        "munge key": Secret(munge, (ACCOUNT, "machine: /etc/munge/munge.key")),
        "head's secret key": Secret(held["head"]["SecretAccessKey"].encode(), ("metadata of the head",)),
        "head's token": Secret(held["head"]["Token"].encode(), ("metadata of the head",)),
        "node's secret key": Secret(held["node"]["SecretAccessKey"].encode(), ("metadata of a node",)),
        "node's token": Secret(held["node"]["Token"].encode(), ("metadata of a node",)),
        "job role's secret key": Secret(
            job["SecretAccessKey"].encode(), (ACCOUNT, "job credentials of a node"), (ACCOUNT,)
        ),
        "job role's token": Secret(job["Token"].encode(), (ACCOUNT, "job credentials of a node"), (ACCOUNT,)),
        "secret key of who deploys": Secret(deployer.encode(), ("environment of who deploys",)),
        "the box's own": Secret(control, (CONTROL,), (CONTROL,)),
        "head's host key": Secret(_file(cluster, head, _HOST_KEY), (f"machine: {_HOST_KEY}",)),
        "a user's key": Secret(_file(cluster, head, f"/home/admin/{_USERS_KEY}"), (_IN_HOME,), (_IN_HOME,)),
        "node token": Secret(_file(cluster, head, NODE_TOKEN), (f"machine: {NODE_TOKEN}",)),
        "Prometheus's password": Secret(
            _file(cluster, head, f"{PROMETHEUS_DIR}/password"),
            (f"machine: {ALERTMANAGER_DIR}/password", f"machine: {PROMETHEUS_DIR}/password"),
        ),
        "Slack's webhook": Secret(_file(cluster, head, SLACK_URL), (ACCOUNT, f"machine: {SLACK_URL}"), (ACCOUNT,)),
        "PagerDuty's key": Secret(
            _file(cluster, head, PAGERDUTY_KEY), (ACCOUNT, f"machine: {PAGERDUTY_KEY}"), (ACCOUNT,)
        ),
    }
    return {name: one for name, one in found.items() if one.value}


def _stored(cluster: Cluster, name: str) -> bytes:
    """The content of a secret of the account."""
    found = cluster.life.client("secretsmanager").get_secret_value(SecretId=name)
    return bytes(found["SecretBinary"])


def _file(cluster: Cluster, instance: str | None, path: str) -> bytes:
    """The content of a file of a machine; empty without it."""
    return cluster.on(instance, "cat", path).encode()


def _credentials(cluster: Cluster, instance: str | None) -> str:
    """What root of a machine gets from its metadata service."""
    script = f"""
token=$(curl -s -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' {_IMDS}/api/token)
get() {{ curl -s -H "X-aws-ec2-metadata-token: $token" {_IMDS}/meta-data/iam/security-credentials/$1; }}
get "$(get)"
"""
    return cluster.on(instance, "sh", "-c", script)


def served(cluster: Cluster, node: str) -> Iterator[tuple[str, str]]:
    """What machines and the box give to those who may have it, by a name for it."""
    yield "metadata of the head", _credentials(cluster, cluster.head())
    yield "metadata of a node", _credentials(cluster, node)
    yield "job credentials of a node", cluster.on(node, "curl", "--silent", URI)
    yield "environment of who deploys", json.dumps(client.environment(cluster.life.box.dir))


def shown(cluster: Cluster, job: int) -> Iterator[tuple[str, str]]:
    """What commands print about a running cluster, and their pages. Writes files below the life's directory."""
    directory, name = cluster.life.directory, cluster.name
    commands: tuple[tuple[str, ...], ...] = (
        ("status", name, "--box"),
        ("status", name, "--box", "--events"),
        ("diagnose", name, str(job), "--box", "--json"),
        ("timeline", name, "--box", "--html", str(directory / "timeline.html")),
        ("usage", name, "--box", "--html", str(directory / "usage.html")),
        ("plan", name, "--html", str(directory / "plan.html")),
    )
    for command in commands:
        yield f"corral {command[0]}", cluster.life.corral(*command).out
    with _dashboard(cluster) as address:
        yield "dashboard/", _read(address)
        # It asks the head only once somebody looks.
        yield "dashboard/cluster.json", cluster.until(lambda: _with_jobs(_read(f"{address}cluster.json")))
        yield f"dashboard/job/{job}.json", _read(f"{address}job/{job}.json")


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def _with_jobs(document: str) -> str:
    """The document of a dashboard that knows the jobs; empty before that."""
    return document if json.loads(document)["slurm"] else ""


@contextmanager
def _dashboard(cluster: Cluster) -> Iterator[str]:
    """The address of the cluster's dashboard."""
    command = [sys.executable, "-m", "corral.cli", "dashboard", cluster.name, "--box", "--no-browser"]
    with subprocess.Popen(
        command, cwd=cluster.life.project, env=cluster.life.environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().removeprefix(f"{cluster.name}: ").strip()
        finally:
            running.terminate()


def crash(cluster: Cluster) -> Path:
    """A report of an internal error of a command."""
    directory = cluster.life.directory / "state"
    command = ("env", f"CORRAL_STATE_DIR={directory}", sys.executable, "-c", _CRASHES, "status", cluster.name, "--box")
    ended = cluster.life.run(command)
    found = sorted(directory.glob("crash-*.txt"))
    assert found, (ended.code, ended.out, ended.err)
    return found[0]


def locations(
    cluster: Cluster, secrets: Mapping[str, Secret], texts: Sequence[tuple[str, str]]
) -> Mapping[str, tuple[str, ...]]:
    """Where each secret is. `texts`: outputs and answers, each with a name."""
    found: dict[str, set[str]] = {name: set() for name in secrets}
    values = {name: one.value for name, one in secrets.items()}
    for origin, content in _contents(cluster, texts):
        for name in secrets_in(content, values):
            found[name].add(_SERVER.sub("jpserver", _HOME.sub("home: ", _MACHINE.sub("machine: /", origin))))
    return {name: tuple(sorted(where)) for name, where in found.items()}


def _contents(cluster: Cluster, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, bytes]]:
    directory = cluster.life.directory
    for origin, text in texts:
        yield origin, text.encode()
    for path in directory.rglob("*"):
        if path.is_file() and not path.is_symlink():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # a running machine has removed it
            yield str(path.relative_to(directory)), content
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
                yield f"s3: {one['Key']}", s3.get_object(Bucket=bucket["Name"], Key=one["Key"])["Body"].read()
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
