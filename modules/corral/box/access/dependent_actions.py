"""The actions that a call requires besides its own: what AWS checks when a service acts with the caller's permissions.

Sources: Service Authorization Reference, "Dependent actions" of Amazon FSx and Amazon EFS; EFS API reference,
CreateMountTarget, DeleteMountTarget, ModifyMountTargetSecurityGroups; FSx API reference,
DeleteFileSystemLustreConfiguration. FSx creates the interfaces of its servers with its service-linked role: no
permission of the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from corral.box.access.policy_evaluator import RequiredAction
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call

Fields = Mapping[str, Any]
_Pairs = Iterator[tuple[str, str]]  # actions, each with its resource


def dependent_actions(name: str, call: Call, fields: Fields, base: Mapping[str, str]) -> Iterator[RequiredAction]:
    """The dependent actions of a call of this IAM action; none for an action without them."""
    if (find := _DEPENDENT.get(name)) is not None:
        for action, resource in find(call, fields):
            yield RequiredAction(action=action, resource=resource, context=base)


def _new_file_system(call: Call, fields: Fields) -> _Pairs:
    from moto.ec2.models import ec2_backends

    subnets = ec2_backends[ACCOUNT][call.region].subnets
    for subnet_id in fields.get("SubnetIds") or ():
        vpcs = {zone[subnet_id].vpc_id for zone in subnets.values() if subnet_id in zone}
        for vpc_id in vpcs:
            yield "ec2:GetSecurityGroupsForVpc", f"arn:aws:ec2:{call.region}:{ACCOUNT}:vpc/{vpc_id}"
    yield from _tagged(call, fields, "fsx", "file-system/*")


def _new_association(call: Call, fields: Fields) -> _Pairs:
    yield from _tagged(call, fields, "fsx", "association/*")


def _ended_file_system(call: Call, fields: Fields) -> _Pairs:
    """FSx takes no last backup of Lustre unless the call requests one."""
    if (fields.get("LustreConfiguration") or {}).get("SkipFinalBackup") is False:
        yield "fsx:CreateBackup", f"arn:aws:fsx:{call.region}:{ACCOUNT}:file-system/{fields.get('FileSystemId', '')}"


def _tagged(call: Call, fields: Fields, service: str, resource: str) -> _Pairs:
    if fields.get("Tags"):
        yield f"{service}:TagResource", f"arn:aws:{service}:{call.region}:{ACCOUNT}:{resource}"


_DEPENDENT: Mapping[str, Callable[[Call, Fields], _Pairs]] = {
    "fsx:CreateFileSystem": _new_file_system,
    "fsx:CreateDataRepositoryAssociation": _new_association,
    "fsx:DeleteFileSystem": _ended_file_system,
}
