"""A copy of the project with a box for its environments, from their first up to their last down.

Its commands are those that people type, with the real engine, daemon and provider: as the account's owner, or as a role
with exactly the policies that `corral bootstrap` creates. Clients of AWS are always the owner's.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boxes
from boxes import inventory
from corral.box import account, client
from corral.box.client import BoxStatus
from corral.engine.bootstrap.iam_steps import create_boundary
from corral.engine.bootstrap.step import BootstrapTarget
from corral.engine.pulumi.binary import find_pulumi
from deployer_role import DEPLOYER, create_deployer
from environments import PROJECT
from forked_corral import run_corral

CORPUS = "corral-example-corpus"
Inventory = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ended."""

    code: int
    out: str
    err: str


def _ended(done: subprocess.CompletedProcess[str]) -> Ended:
    return Ended(code=done.returncode, out=done.stdout, err=done.stderr)


@dataclass(kw_only=True)
class Life:
    """A copy of the project, a box, and records for later steps. `role`: whose commands they are, if not the
    account owner's.
    """

    directory: Path
    box: BoxStatus
    role: str | None = None
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def project(self) -> Path:
        """The copy of the project."""
        return self.directory / "project"

    def corral(self, *arguments: str, code: int | None = 0) -> Ended:
        """A corral command on the copy, in the box."""
        ended = _ended(run_corral(*arguments, cwd=self.project, env=self.environment))
        if code is not None and ended.code != code:
            raise AssertionError(f"corral {arguments} ended with {ended.code}:\n{ended.out}\n{ended.err}")
        return ended

    def done(self, *arguments: str) -> Any:
        """The document of a command in the box that asks for nothing and must succeed."""
        return json.loads(self.corral(*arguments, "--box", "--yes", "--json").out)

    def pulumi(self, stack: str, *arguments: str) -> Ended:
        """Plain pulumi in the box's copy of a stack, as a person types it."""
        binary = str(find_pulumi().path)
        return self.run([binary, "-C", str(self.box.dir / "stacks" / stack), "--non-interactive", *arguments])

    def run(self, command: Sequence[str]) -> Ended:
        """Any command, with the box's environment and the role's credentials."""
        return _ended(
            subprocess.run(
                command,
                cwd=self.project,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of its commands."""
        return {**os.environ, **client.environment(self.box.dir, self.role), "COLUMNS": "120"}

    def client(self, service: str) -> Any:
        """A boto3 client of the box."""
        return boxes.client(self.box, service)

    def inventory(self) -> Inventory:
        """All that the box holds, without the deployer's role and policies.

        Keys that sign are a kind of their own, without those that wait for their deletion: each base has another one.
        """
        found = {
            kind: ids for kind, ids in inventory(self.box.dir).items() if (kind, tuple(ids)) not in self.seen["own"]
        }
        states = {key: self._signing_state(key) for key in found.get("kms/key", ())}
        keys = {
            "kms/key": [key for key, state in states.items() if not state],
            "kms/signing-key": [key for key, state in states.items() if state and state != "PendingDeletion"],
        }
        return {kind: ids for kind, ids in {**found, **keys}.items() if ids}

    def _signing_state(self, key: str) -> str:
        """The state of a key that signs; empty for another."""
        kms = self.client("kms")
        with suppress(kms.exceptions.NotFoundException):  # it is in another region
            found = kms.describe_key(KeyId=key.partition(" ")[0])["KeyMetadata"]  # its state may follow
            return str(found["KeyState"]) if found["KeyUsage"] == "SIGN_VERIFY" else ""
        return ""

    def settle_tags(self) -> None:
        """Let five minutes pass for the tags of keys, which count for permissions only then."""
        self.box = boxes.settle_tags(self.box)

    def head(self) -> Any:
        """The head as EC2 describes it."""
        filters = [
            {"Name": "tag:Name", "Values": ["corral-dev-head"]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        (reservation,) = self.client("ec2").describe_instances(Filters=filters)["Reservations"]
        return reservation["Instances"][0]

    def object_text(self, path: str) -> str:
        """A file of the cluster, from its bucket."""
        bucket = f"corral-dev-{account.ACCOUNT}-us-east-1"
        answer = self.client("s3").get_object(Bucket=bucket, Key=f"clusters/dev/{path}")
        return str(answer["Body"].read().decode())

    def parameter(self, name: str) -> str:
        """The value of a parameter of SSM."""
        return str(self.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])

    def template_of(self, offer: str) -> Any:
        """The launch template of this offer: its description and its data."""
        filters = [{"Name": "tag:Name", "Values": [f"corral-dev-{offer}"]}]
        (template,) = self.client("ec2").describe_launch_templates(Filters=filters)["LaunchTemplates"]
        versions = self.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Default"]
        )
        return versions["LaunchTemplateVersions"][0]


def begin(directory: Path, box: BoxStatus, *, deployer_in: str | None = None) -> Life:
    """The copy before the first up; the box holds the user's data bucket, the boundary of roles and nothing else.

    `deployer_in`: the region of a deployer, whose role and policies it then has as well.
    """
    life = Life(directory=directory, box=box, role=DEPLOYER if deployer_in else None)
    if deployer_in:
        create_deployer(life.client("iam"), deployer_in)
    create_boundary(life.client, BootstrapTarget(account=account.ACCOUNT, region=deployer_in or account.REGION))
    shutil.copytree(PROJECT / "stacks", life.project / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
    life.seen["own"] = {(kind, tuple(ids)) for kind, ids in inventory(box.dir).items()}
    life.client("s3").create_bucket(Bucket=CORPUS)
    life.seen["before"] = life.inventory()
    return life


def changes(stack: Mapping[str, Any]) -> int:
    """How many resources of the stack a command touched."""
    return sum(stack[name] for name in ("created", "updated", "replaced", "deleted"))


def launched(life: Life, cluster: str, region: str) -> dict[str, Any]:
    """One instance of each offer's template, as EC2 describes it, by the offer."""
    ec2 = boxes.client(life.box, "ec2", region)
    wanted = [{"Name": "tag:corral:cluster", "Values": [cluster]}]
    found = {}
    for template in ec2.describe_launch_templates(Filters=wanted)["LaunchTemplates"]:
        named = {"LaunchTemplateId": template["LaunchTemplateId"], "Version": "$Default"}
        (made,) = ec2.run_instances(LaunchTemplate=named, MinCount=1, MaxCount=1)["Instances"]
        (reservation,) = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"]
        tags = {tag["Key"]: tag["Value"] for tag in reservation["Instances"][0]["Tags"]}
        found[tags["corral:offer"]] = reservation["Instances"][0]
    return found


def facts(instance: Mapping[str, Any]) -> tuple[Any, ...]:
    """Market, reservation, interfaces, and whether it stands in a placement group."""
    return (
        instance.get("InstanceLifecycle", "on-demand"),
        instance.get("CapacityReservationId"),
        len(instance["NetworkInterfaces"]),
        bool(instance["Placement"].get("GroupName")),
    )


def digest(directory: Path) -> Mapping[str, str]:
    """The hash of every file below the directory."""
    files = sorted(path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
