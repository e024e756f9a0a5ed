"""Boxes for tests: a daemon in a directory of its own, stopped at the end of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from bucket_owners import unowned_calls
from corral.box import client as box_client
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus
from corral.box.daemon.daemon_process import send_request
from corral.box.secret import read_secret
from corral.box.state.directory import StateDirectory
from corral.box.switches import Behaviour, Machines
from corral.model.bucket_owner import expect_owner

RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 8})  # enough to stay below EC2's request rates

# Creates a bucket of another account in a box that does not run; moto lets every account read it.
TAKE_BUCKET = """
import sys
from pathlib import Path
from corral.box.daemon import moto_overrides
from corral.box.state import saved_state
from corral.box.state.directory import StateDirectory
from moto.s3.models import s3_backends

moto_overrides.install()
home = StateDirectory(Path(sys.argv[1]))
saved_state.load(home)
s3_backends["999999999999"]["aws"].create_bucket(sys.argv[2], "us-east-1")
saved_state.save(home)
"""

# Moves all changes of a key's tags five minutes back, in a box that does not run.
SETTLE_TAGS = """
import sys
from dataclasses import replace
from pathlib import Path
from corral.box.delays import KMS_TAGS
from corral.box.daemon import moto_overrides
from corral.box.state import saved_state
from corral.box.state.directory import StateDirectory

moto_overrides.install()
home = StateDirectory(Path(sys.argv[1]))
saved_state.load(home)
for _, _, _, backend in saved_state.backends():
    for changes in getattr(backend, "tag_changes", {}).values():
        changes[:] = [replace(one, at=one.at - KMS_TAGS.aws_s) for one in changes]
saved_state.save(home)
"""


@contextmanager
def running_box(
    directory: Path, *, machines: bool = False, system: Path | None = None, speed: int | None = None
) -> Iterator[BoxStatus]:
    """Run a box in the directory, and stop it in any case. Its instances are only records unless `machines`.

    Fails if one of its machines called S3 without the owner of the bucket.

    `system`: the root directory of the machines (default: that of this system). `speed`: that of an aws-like box
    (default: an instant one).
    """
    status = start(directory, machines=machines, system=system, speed=speed)
    try:
        yield status
    finally:
        box_client.stop(directory)
    assert unowned_calls(StateDirectory(directory).calls) == []


def start(
    directory: Path, *, machines: bool = False, system: Path | None = None, speed: int | None = None
) -> BoxStatus:
    """Start a box whose instances are only records unless `machines`, and an aws-like one if it has a `speed`."""
    switch = Machines.NAMESPACE if machines else Machines.NONE
    behaviour = Behaviour.AWS_LIKE if speed else None
    return box_client.start(directory, machines=switch, system=system, behaviour=behaviour, speed=speed)


def take_bucket(directory: Path, name: str) -> BoxStatus:
    """Give the bucket to another account, which opens it to all; restarts the box in the directory."""
    box_client.stop(directory)
    subprocess.run([sys.executable, "-c", TAKE_BUCKET, str(directory), name], check=True)
    return start(directory)


def owner_keys(status: BoxStatus) -> Mapping[str, str]:
    """The keys of the account's owner, as boto3 names them."""
    secret = read_secret(StateDirectory(status.dir))
    return {"aws_access_key_id": secret.owner_key, "aws_secret_access_key": secret.owner_secret_key}


@cache
def _session(directory: Path) -> Any:
    return boto3.session.Session(**owner_keys(BoxStatus(state="running", dir=directory)))


@cache
def _client(directory: Path, url: str, service: str, region: str) -> Any:
    made = _session(directory).client(service, endpoint_url=url, region_name=region, config=RETRIES)
    return expect_owner(made, lambda: ACCOUNT) if service == "s3" else made


def client(status: BoxStatus, service: str, region: str = "us-east-1") -> Any:
    """A boto3 client of the box, which ignores the environment variables. S3's names the account, as corral's do."""
    return _client(status.dir, str(status.url), service, region)


def process_environment(status: BoxStatus) -> Mapping[str, str]:
    """The environment variables of a child process that uses the box."""
    return {**os.environ, **box_client.environment(status.dir)}


def inventory(directory: Path) -> Mapping[str, list[str]]:
    """The resources in the running box that a new account does not have: sorted ids by service and kind."""
    address = box_client.running_address(directory)
    return {kind: list(ids) for kind, ids in send_request(address, "GET", "/_box/inventory").items()}


def settle_tags(box: BoxStatus) -> BoxStatus:
    """The box five minutes later, when the tags of keys count for permissions."""
    box_client.stop(box.dir)
    subprocess.run([sys.executable, "-c", SETTLE_TAGS, str(box.dir)], check=True)
    return start(box.dir)


def subscribed_queue(sns: Any, sqs: Any, topic: str) -> str:
    """The address of a new queue that gets what is published to the topic."""
    queue: str = sqs.create_queue(QueueName="mails")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    return queue
