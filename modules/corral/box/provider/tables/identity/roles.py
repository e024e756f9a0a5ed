"""IAM roles, their inline policies and attachments, and instance profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, json_document, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.identity.iam_requests import NO_ENTITY, creation_tags, document_text


def _create_role(cloud: RegionClients, inputs: State) -> str:
    names = ("name", "path", "assumeRolePolicy", "description", "maxSessionDuration", "permissionsBoundary")
    return str(
        cloud.iam.create_role(**to_request(ROLE.props, inputs, names), **creation_tags(inputs))["Role"]["RoleName"]
    )


def _read_role(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on(NO_ENTITY):
        role = cloud.iam.get_role(RoleName=id)["Role"]
    return {
        **from_response(ROLE.state, {**role, "CreateDate": role["CreateDate"].isoformat()}),
        "assumeRolePolicy": document_text(role["AssumeRolePolicyDocument"]),
        "permissionsBoundary": (role.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn"),
        "tagsAll": tag_map(role.get("Tags")),
    }


def _update_role(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("assumeRolePolicy"):
        document = change.new["assumeRolePolicy"]
        cloud.iam.update_assume_role_policy(RoleName=change.id, PolicyDocument=document)
    if change.touches("description", "maxSessionDuration"):
        cloud.iam.update_role(
            RoleName=change.id,
            Description=change.new.get("description", ""),
            MaxSessionDuration=change.new.get("maxSessionDuration", 3600),
        )
    if change.touches("permissionsBoundary"):
        boundary = change.new.get("permissionsBoundary")
        if boundary:
            cloud.iam.put_role_permissions_boundary(RoleName=change.id, PermissionsBoundary=boundary)
        else:
            cloud.iam.delete_role_permissions_boundary(RoleName=change.id)


def _delete_role(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on(NO_ENTITY):
        for profile in cloud.iam.list_instance_profiles_for_role(RoleName=id)["InstanceProfiles"]:
            name = profile["InstanceProfileName"]
            cloud.iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=id)
        if state.get("forceDetachPolicies"):
            _strip_role(cloud, id)
        cloud.iam.delete_role(RoleName=id)


def _strip_role(cloud: RegionClients, id: str) -> None:
    for policy in cloud.iam.list_attached_role_policies(RoleName=id)["AttachedPolicies"]:
        cloud.iam.detach_role_policy(RoleName=id, PolicyArn=policy["PolicyArn"])
    for name in cloud.iam.list_role_policies(RoleName=id)["PolicyNames"]:
        cloud.iam.delete_role_policy(RoleName=id, PolicyName=name)


def _retag_role(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.iam.untag_role(RoleName=id, TagKeys=drop)
    if put:
        cloud.iam.tag_role(RoleName=id, Tags=tag_list(put))


ROLE = Resource(
    token="aws:iam/role:Role",
    props={
        "name": text(replaces=True, aws="RoleName"),
        "path": text(replaces=True, default="/"),
        "assumeRolePolicy": json_document(required=True, aws="AssumeRolePolicyDocument"),
        "description": text(),
        "maxSessionDuration": integer(default=3600),
        "permissionsBoundary": text(),
        "forceDetachPolicies": boolean(write_only=True, default=False),
    },
    outputs={"arn": text(), "createDate": text(), "uniqueId": text(aws="RoleId")},
    create=_create_role,
    read=_read_role,
    update=_update_role,
    delete=_delete_role,
    retag=_retag_role,
    autonamed="name",
    is_global=True,
)


def _put_role_policy(cloud: RegionClients, inputs: State) -> str:
    cloud.iam.put_role_policy(**to_request(ROLE_POLICY.props, inputs))
    return f"{inputs['role']}:{inputs['name']}"


def _read_role_policy(cloud: RegionClients, id: str, known: State) -> State:
    role, _, name = id.partition(":")
    with not_found_on(NO_ENTITY):
        found = cloud.iam.get_role_policy(RoleName=role, PolicyName=name)
    return {"role": role, "name": name, "policy": document_text(found["PolicyDocument"])}


def _update_role_policy(cloud: RegionClients, change: ResourceUpdate) -> None:
    _put_role_policy(cloud, change.new)


def _delete_role_policy(cloud: RegionClients, id: str, state: State) -> None:
    role, _, name = id.partition(":")
    with not_found_on(NO_ENTITY):
        cloud.iam.delete_role_policy(RoleName=role, PolicyName=name)


ROLE_POLICY = Resource(
    token="aws:iam/rolePolicy:RolePolicy",
    props={
        "name": text(replaces=True, aws="PolicyName"),
        "role": text(required=True, replaces=True, aws="RoleName"),
        "policy": json_document(required=True, aws="PolicyDocument"),
    },
    create=_put_role_policy,
    read=_read_role_policy,
    update=_update_role_policy,
    delete=_delete_role_policy,
    autonamed="name",
    is_global=True,
)


def _create_profile(cloud: RegionClients, inputs: State) -> str:
    request = to_request(PROFILE.props, inputs, ("name", "path"))
    made = cloud.iam.create_instance_profile(**request, **creation_tags(inputs))
    return str(made["InstanceProfile"]["InstanceProfileName"])


def _apply_profile(cloud: RegionClients, id: str, inputs: State) -> None:
    wanted = inputs.get("role")
    present = {role["RoleName"] for role in _profile(cloud, id)["Roles"]}
    for role in present - {wanted}:
        cloud.iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=role)
    if wanted and wanted not in present:
        cloud.iam.add_role_to_instance_profile(InstanceProfileName=id, RoleName=wanted)


def _profile(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on(NO_ENTITY):
        profile: Mapping[str, Any] = cloud.iam.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]
    return profile


def _read_profile(cloud: RegionClients, id: str, known: State) -> State:
    profile = _profile(cloud, id)
    roles = profile.get("Roles") or [{}]
    return {
        **from_response(PROFILE.state, {**profile, "CreateDate": profile["CreateDate"].isoformat()}),
        "role": roles[0].get("RoleName"),
        "tagsAll": tag_map(profile.get("Tags")),
    }


def _delete_profile(cloud: RegionClients, id: str, state: State) -> None:
    _apply_profile(cloud, id, {})
    with not_found_on(NO_ENTITY):
        cloud.iam.delete_instance_profile(InstanceProfileName=id)


def _retag_profile(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.iam.untag_instance_profile(InstanceProfileName=id, TagKeys=drop)
    if put:
        cloud.iam.tag_instance_profile(InstanceProfileName=id, Tags=tag_list(put))


PROFILE = Resource(
    token="aws:iam/instanceProfile:InstanceProfile",
    props={
        "name": text(replaces=True, aws="InstanceProfileName"),
        "path": text(replaces=True, default="/"),
        "role": text(),
    },
    outputs={"arn": text(), "createDate": text(), "uniqueId": text(aws="InstanceProfileId")},
    create=_create_profile,
    apply=_apply_profile,
    read=_read_profile,
    delete=_delete_profile,
    retag=_retag_profile,
    autonamed="name",
    is_global=True,
)

RESOURCES = (
    ROLE,
    ROLE_POLICY,
    PROFILE,
)
