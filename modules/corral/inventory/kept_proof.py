"""Whether a resource with a base's keep tag is the base's own. Whoever may set tags could plant another one.

The alias of the base's key, which outlives the base with the key, is the proof: only who may change that alias and both
keys can move it. Bucket and file systems are encrypted with that key, and the bucket has the base's name; a network
outlives its base only with a Lustre file system in it, which proves it. Subnets, groups and their rules of a proven
VPC count as proven: to plant one takes the right to change that network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.existing import exists
from corral.inventory.resources import ResourceKind
from corral.inventory.untagged import account_of
from corral.model.base import key_alias
from corral.model.tags import BASE_TAG, KEEP_TAG


def kept_problem(session: Any, base: str, arn: str) -> str | None:
    """Why the tagged resource of this ARN is not this base's own; None if it is, or of a kind without data.

    Raises ClientError if AWS does not tell.
    """
    service, rest = arn.split(":")[2], arn.split(":", 5)[5]
    check = _CHECKS.get(service)
    return check(session, base, rest) if check else None


def retained_problem(session: Any, base: str, kind: ResourceKind, id: str) -> str | None:
    """The same about a resource that holds data, by its kind and id."""
    check, start = _RETAINED[kind]
    return check(session, base, f"{start}{id}")


def unproven(session: Any, base: str, known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The ARN of each existing resource with this base's keep tag that is not its own, and why.

    `known`: ids of resources of which the base's state says the same; these are left out.
    """
    filters = [{"Key": BASE_TAG, "Values": [base]}, {"Key": KEEP_TAG}]
    tagging = session.client("resourcegroupstaggingapi")
    for page in tagging.get_paginator("get_resources").paginate(TagFilters=filters):
        for arn in sorted(str(one["ResourceARN"]) for one in page["ResourceTagMappingList"]):
            is_new = arn.rpartition(":")[2].rpartition("/")[2] not in known
            if is_new and exists(session, arn) and (problem := kept_problem(session, base, arn)):
                yield arn, problem


def _base_key(session: Any, base: str) -> str | None:
    """The ARN of the key that the base's alias names; None if there is no alias."""
    kms = session.client("kms")
    try:
        return str(kms.describe_key(KeyId=key_alias(base))["KeyMetadata"]["Arn"])
    except kms.exceptions.NotFoundException:
        return None


def _key(session: Any, base: str, rest: str) -> str | None:
    named = _base_key(session, base)
    if named is not None and named.endswith(f":{rest}"):
        return None
    return f"{key_alias(base)} names {named or 'no key'}"


def _bucket(session: Any, base: str, rest: str) -> str | None:
    name = f"corral-{base}-{account_of(session)}-{session.region_name}"
    if rest != name:
        return f"the base's bucket is {name}"
    try:
        found = session.client("s3").get_bucket_encryption(Bucket=rest)["ServerSideEncryptionConfiguration"]["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ServerSideEncryptionConfigurationNotFoundError":
            raise
        found = []
    keys = [rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID") for rule in found]
    return _other_key(session, base, next(iter(keys), None))


def _home(session: Any, base: str, rest: str) -> str | None:
    id = rest.removeprefix("file-system/")
    (found,) = session.client("efs").describe_file_systems(FileSystemId=id)["FileSystems"]
    return _other_key(session, base, found.get("KmsKeyId"))


def _lustre(session: Any, base: str, rest: str) -> str | None:
    id = rest.removeprefix("file-system/")
    (found,) = session.client("fsx").describe_file_systems(FileSystemIds=[id])["FileSystems"]
    return _other_key(session, base, found.get("KmsKeyId"))


def _other_key(session: Any, base: str, key: str | None) -> str | None:
    own = _base_key(session, base)
    if own is None:
        return f"{key_alias(base)} names no key"
    return None if key == own else f"it is encrypted with {key or 'a key of AWS'}, not with {own}"


def _network(session: Any, base: str, rest: str) -> str | None:
    kind, _, id = rest.partition("/")
    if kind not in _VPCS:
        return None
    vpc, own = _VPCS[kind](session.client("ec2"), id), _vpcs_of_lustre(session, base)
    return None if vpc in own else f"no file system with the base's key is in {vpc}"


def _vpcs_of_lustre(session: Any, base: str) -> frozenset[str]:
    own, pages = _base_key(session, base), session.client("fsx").get_paginator("describe_file_systems").paginate()
    found = [one for page in pages for one in page["FileSystems"] if own is not None and one.get("KmsKeyId") == own]
    return frozenset(one["VpcId"] for one in found if {"Key": BASE_TAG, "Value": base} in one.get("Tags", ()))


def _vpc_of(call: str, answer: str, name: str, ec2: Any, id: str) -> str:
    """The VPC of an EC2 resource of this id; the group decides for a rule."""
    (found,) = getattr(ec2, call)(Filters=[{"Name": name, "Values": [id]}])[answer]
    return str(found["VpcId"] if "VpcId" in found else _VPCS["security-group"](ec2, found["GroupId"]))


_VPCS: Mapping[str, Callable[[Any, str], str]] = {
    "vpc": lambda _, id: id,
    "subnet": partial(_vpc_of, "describe_subnets", "Subnets", "subnet-id"),
    "security-group": partial(_vpc_of, "describe_security_groups", "SecurityGroups", "group-id"),
    "security-group-rule": partial(
        _vpc_of, "describe_security_group_rules", "SecurityGroupRules", "security-group-rule-id"
    ),
}
_Check = Callable[[Any, str, str], str | None]
_RETAINED: Mapping[ResourceKind, tuple[_Check, str]] = {
    ResourceKind.BUCKET: (_bucket, ""),
    ResourceKind.HOME: (_home, "file-system/"),
    ResourceKind.KEY: (_key, "key/"),
    ResourceKind.LUSTRE: (_lustre, "file-system/"),
}
_CHECKS: Mapping[str, _Check] = {
    "ec2": _network,
    "elasticfilesystem": _home,
    "fsx": _lustre,
    "kms": _key,
    "s3": _bucket,
}
