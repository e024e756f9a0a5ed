"""Whether a resource that the tagging API lists still exists: it also lists resources that were deleted, for hours.

Source: Resource Groups Tagging API reference, GetResources ("tagged or previously tagged"); boto/boto3#3341,
aws/aws-cli#4173. Only the kinds that a base retains are known; other ones count as existing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

# Kind of EC2 resource in an ARN -> the call that lists it, its answer, and the filter of its id.
_EC2: Mapping[str, tuple[str, str, str]] = {
    "vpc": ("describe_vpcs", "Vpcs", "vpc-id"),
    "subnet": ("describe_subnets", "Subnets", "subnet-id"),
    "security-group": ("describe_security_groups", "SecurityGroups", "group-id"),
    "security-group-rule": ("describe_security_group_rules", "SecurityGroupRules", "security-group-rule-id"),
}
_ENDING = frozenset({"deleting", "deleted"})


def exists(session: Any, arn: str) -> bool:
    """Whether the resource of this ARN exists and is not being deleted. Raises ClientError if AWS does not tell."""
    service, rest = arn.split(":")[2], arn.split(":", 5)[5]
    read = _READERS.get(service)
    return read is None or read(session, rest)


def _ec2(session: Any, rest: str) -> bool:
    kind, _, id = rest.partition("/")
    if kind not in _EC2:
        return True
    call, answer, name = _EC2[kind]
    found = getattr(session.client("ec2"), call)(Filters=[{"Name": name, "Values": [id]}])
    return bool(found[answer])


def _bucket(session: Any, rest: str) -> bool:
    return _answer(lambda: session.client("s3").head_bucket(Bucket=rest), "404", "NoSuchBucket") is not None


def _key(session: Any, rest: str) -> bool:
    key = rest.removeprefix("key/")
    found = _answer(lambda: session.client("kms").describe_key(KeyId=key), "NotFoundException")
    return found is not None and found["KeyMetadata"]["KeyState"] != "PendingDeletion"


def _home(session: Any, rest: str) -> bool:
    id = rest.removeprefix("file-system/")
    found = _answer(lambda: session.client("efs").describe_file_systems(FileSystemId=id), "FileSystemNotFound")
    return found is not None and found["FileSystems"][0]["LifeCycleState"] not in _ENDING


def _lustre(session: Any, rest: str) -> bool:
    id = rest.removeprefix("file-system/")
    found = _answer(lambda: session.client("fsx").describe_file_systems(FileSystemIds=[id]), "FileSystemNotFound")
    return found is not None and found["FileSystems"][0]["Lifecycle"].lower() not in _ENDING


def _answer(call: Callable[[], Any], *missing: str) -> Any:
    """The answer of the call; None if it fails with one of these codes."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in missing:
            return None
        raise


_READERS: Mapping[str, Callable[[Any, str], bool]] = {
    "ec2": _ec2,
    "s3": _bucket,
    "kms": _key,
    "elasticfilesystem": _home,
    "fsx": _lustre,
}
