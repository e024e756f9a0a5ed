"""Who may do what: IAM roles and policies, KMS keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import document, flag, text, whole
from corral.box.provider.translate import record, request, tag_list, tag_map

NO_ENTITY = "NoSuchEntity"
KEPT_VERSIONS = 5  # of a policy; IAM, quotas


def _tags(inputs: State) -> dict[str, Any]:
    return {"Tags": tag_list(inputs["tagsAll"])} if inputs.get("tagsAll") else {}


# --- policies


def _create_policy(cloud: Cloud, inputs: State) -> str:
    names = ("name", "path", "description", "policy")
    return str(cloud.iam.create_policy(**request(POLICY.props, inputs, names), **_tags(inputs))["Policy"]["Arn"])


def _read_policy(cloud: Cloud, id: str, known: State) -> State:
    with absence(NO_ENTITY):
        policy = cloud.iam.get_policy(PolicyArn=id)["Policy"]
        version = cloud.iam.get_policy_version(PolicyArn=id, VersionId=policy["DefaultVersionId"])
    return {
        **record(POLICY.state, policy),
        "policy": _json(version["PolicyVersion"]["Document"]),
        "tagsAll": tag_map(cloud.iam.list_policy_tags(PolicyArn=id)["Tags"]),
    }


def _update_policy(cloud: Cloud, change: Change) -> None:
    if not change.touches("policy"):
        return
    versions = cloud.iam.list_policy_versions(PolicyArn=change.id)["Versions"]
    spare = [one["VersionId"] for one in versions if not one["IsDefaultVersion"]]
    if len(versions) >= KEPT_VERSIONS:
        cloud.iam.delete_policy_version(PolicyArn=change.id, VersionId=min(spare, key=lambda name: int(name[1:])))
    cloud.iam.create_policy_version(PolicyArn=change.id, PolicyDocument=change.new["policy"], SetAsDefault=True)


def _delete_policy(cloud: Cloud, id: str, state: State) -> None:
    with absence(NO_ENTITY):
        for version in cloud.iam.list_policy_versions(PolicyArn=id)["Versions"]:
            if not version["IsDefaultVersion"]:
                cloud.iam.delete_policy_version(PolicyArn=id, VersionId=version["VersionId"])
        cloud.iam.delete_policy(PolicyArn=id)


def _retag_policy(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.iam.untag_policy(PolicyArn=id, TagKeys=drop)
    if put:
        cloud.iam.tag_policy(PolicyArn=id, Tags=tag_list(put))


POLICY = Resource(
    token="aws:iam/policy:Policy",
    props={
        "name": text(replaces=True, aws="PolicyName"),
        "path": text(replaces=True, default="/"),
        "description": text(replaces=True),
        "policy": document(required=True, aws="PolicyDocument"),
    },
    outputs={"arn": text(), "policyId": text(), "attachmentCount": whole()},
    create=_create_policy,
    read=_read_policy,
    update=_update_policy,
    delete=_delete_policy,
    retag=_retag_policy,
    autonamed="name",
    is_global=True,
)

# --- roles


def _create_role(cloud: Cloud, inputs: State) -> str:
    names = ("name", "path", "assumeRolePolicy", "description", "maxSessionDuration", "permissionsBoundary")
    return str(cloud.iam.create_role(**request(ROLE.props, inputs, names), **_tags(inputs))["Role"]["RoleName"])


def _read_role(cloud: Cloud, id: str, known: State) -> State:
    with absence(NO_ENTITY):
        role = cloud.iam.get_role(RoleName=id)["Role"]
    return {
        **record(ROLE.state, {**role, "CreateDate": role["CreateDate"].isoformat()}),
        "assumeRolePolicy": _json(role["AssumeRolePolicyDocument"]),
        "permissionsBoundary": (role.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn"),
        "tagsAll": tag_map(role.get("Tags")),
    }


def _update_role(cloud: Cloud, change: Change) -> None:
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


def _delete_role(cloud: Cloud, id: str, state: State) -> None:
    with absence(NO_ENTITY):
        for profile in cloud.iam.list_instance_profiles_for_role(RoleName=id)["InstanceProfiles"]:
            name = profile["InstanceProfileName"]
            cloud.iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=id)
        if state.get("forceDetachPolicies"):
            _strip_role(cloud, id)
        cloud.iam.delete_role(RoleName=id)


def _strip_role(cloud: Cloud, id: str) -> None:
    for policy in cloud.iam.list_attached_role_policies(RoleName=id)["AttachedPolicies"]:
        cloud.iam.detach_role_policy(RoleName=id, PolicyArn=policy["PolicyArn"])
    for name in cloud.iam.list_role_policies(RoleName=id)["PolicyNames"]:
        cloud.iam.delete_role_policy(RoleName=id, PolicyName=name)


def _retag_role(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.iam.untag_role(RoleName=id, TagKeys=drop)
    if put:
        cloud.iam.tag_role(RoleName=id, Tags=tag_list(put))


ROLE = Resource(
    token="aws:iam/role:Role",
    props={
        "name": text(replaces=True, aws="RoleName"),
        "path": text(replaces=True, default="/"),
        "assumeRolePolicy": document(required=True, aws="AssumeRolePolicyDocument"),
        "description": text(),
        "maxSessionDuration": whole(default=3600),
        "permissionsBoundary": text(),
        "forceDetachPolicies": flag(kept=True, default=False),
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


def _put_role_policy(cloud: Cloud, inputs: State) -> str:
    cloud.iam.put_role_policy(**request(ROLE_POLICY.props, inputs))
    return f"{inputs['role']}:{inputs['name']}"


def _read_role_policy(cloud: Cloud, id: str, known: State) -> State:
    role, _, name = id.partition(":")
    with absence(NO_ENTITY):
        found = cloud.iam.get_role_policy(RoleName=role, PolicyName=name)
    return {"role": role, "name": name, "policy": _json(found["PolicyDocument"])}


def _update_role_policy(cloud: Cloud, change: Change) -> None:
    _put_role_policy(cloud, change.new)


def _delete_role_policy(cloud: Cloud, id: str, state: State) -> None:
    role, _, name = id.partition(":")
    with absence(NO_ENTITY):
        cloud.iam.delete_role_policy(RoleName=role, PolicyName=name)


ROLE_POLICY = Resource(
    token="aws:iam/rolePolicy:RolePolicy",
    props={
        "name": text(replaces=True, aws="PolicyName"),
        "role": text(required=True, replaces=True, aws="RoleName"),
        "policy": document(required=True, aws="PolicyDocument"),
    },
    create=_put_role_policy,
    read=_read_role_policy,
    update=_update_role_policy,
    delete=_delete_role_policy,
    autonamed="name",
    is_global=True,
)


def _attach(cloud: Cloud, inputs: State) -> str:
    cloud.iam.attach_role_policy(**request(ROLE_ATTACHMENT.props, inputs))
    return f"{inputs['role']}/{inputs['policyArn']}"


def _read_attached(cloud: Cloud, id: str, known: State) -> State:
    role, _, arn = id.partition("/")
    with absence(NO_ENTITY):
        pages = cloud.iam.get_paginator("list_attached_role_policies").paginate(RoleName=role)
        attached = {policy["PolicyArn"] for page in pages for policy in page["AttachedPolicies"]}
    if arn not in attached:
        raise Gone(f"{arn} is not attached to {role}")
    return {"role": role, "policyArn": arn}


def _detach(cloud: Cloud, id: str, state: State) -> None:
    role, _, arn = id.partition("/")
    with absence(NO_ENTITY):
        cloud.iam.detach_role_policy(RoleName=role, PolicyArn=arn)


ROLE_ATTACHMENT = Resource(
    token="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    props={
        "role": text(required=True, replaces=True, aws="RoleName"),
        "policyArn": text(required=True, replaces=True),
    },
    create=_attach,
    read=_read_attached,
    delete=_detach,
    is_global=True,
)


def _create_profile(cloud: Cloud, inputs: State) -> str:
    asked = request(PROFILE.props, inputs, ("name", "path"))
    made = cloud.iam.create_instance_profile(**asked, **_tags(inputs))
    return str(made["InstanceProfile"]["InstanceProfileName"])


def _settle_profile(cloud: Cloud, id: str, inputs: State) -> None:
    wanted = inputs.get("role")
    present = {role["RoleName"] for role in _profile(cloud, id)["Roles"]}
    for role in present - {wanted}:
        cloud.iam.remove_role_from_instance_profile(InstanceProfileName=id, RoleName=role)
    if wanted and wanted not in present:
        cloud.iam.add_role_to_instance_profile(InstanceProfileName=id, RoleName=wanted)


def _profile(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence(NO_ENTITY):
        profile: Mapping[str, Any] = cloud.iam.get_instance_profile(InstanceProfileName=id)["InstanceProfile"]
    return profile


def _read_profile(cloud: Cloud, id: str, known: State) -> State:
    profile = _profile(cloud, id)
    roles = profile.get("Roles") or [{}]
    return {
        **record(PROFILE.state, {**profile, "CreateDate": profile["CreateDate"].isoformat()}),
        "role": roles[0].get("RoleName"),
        "tagsAll": tag_map(profile.get("Tags")),
    }


def _delete_profile(cloud: Cloud, id: str, state: State) -> None:
    _settle_profile(cloud, id, {})
    with absence(NO_ENTITY):
        cloud.iam.delete_instance_profile(InstanceProfileName=id)


def _retag_profile(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
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
    settle=_settle_profile,
    read=_read_profile,
    delete=_delete_profile,
    retag=_retag_profile,
    autonamed="name",
    is_global=True,
)

# --- keys


def _create_key(cloud: Cloud, inputs: State) -> str:
    asked = request(KEY.props, inputs, ("description", "policy", "keyUsage", "customerMasterKeySpec", "multiRegion"))
    tags = [{"TagKey": key, "TagValue": value} for key, value in (inputs.get("tagsAll") or {}).items()]
    return str(cloud.kms.create_key(**asked, Tags=tags)["KeyMetadata"]["KeyId"])


def _describe_key(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("NotFoundException"):
        key: Mapping[str, Any] = cloud.kms.describe_key(KeyId=id)["KeyMetadata"]
    if key["KeyState"] == "PendingDeletion":
        raise Gone(f"{id} will be deleted")
    return key


def _settle_key(cloud: Cloud, id: str, inputs: State) -> None:
    rotates, wanted = cloud.kms.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"], inputs.get("enableKeyRotation")
    if bool(wanted) != rotates:
        (cloud.kms.enable_key_rotation if wanted else cloud.kms.disable_key_rotation)(KeyId=id)
    enabled = inputs.get("isEnabled", True)
    if _describe_key(cloud, id)["Enabled"] != enabled:
        (cloud.kms.enable_key if enabled else cloud.kms.disable_key)(KeyId=id)


def _read_key(cloud: Cloud, id: str, known: State) -> State:
    key = _describe_key(cloud, id)
    tags = cloud.kms.list_resource_tags(KeyId=id)["Tags"]
    return {
        **record(KEY.state, key),
        "isEnabled": key["Enabled"],
        "policy": cloud.kms.get_key_policy(KeyId=id, PolicyName="default")["Policy"],
        "enableKeyRotation": cloud.kms.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"],
        "tagsAll": tag_map(tags, "TagKey", "TagValue"),
    }


def _update_key(cloud: Cloud, change: Change) -> None:
    if change.touches("description"):
        cloud.kms.update_key_description(KeyId=change.id, Description=change.new.get("description", ""))
    if change.touches("policy"):
        cloud.kms.put_key_policy(KeyId=change.id, PolicyName="default", Policy=change.new["policy"])


def _delete_key(cloud: Cloud, id: str, state: State) -> None:
    _describe_key(cloud, id)
    cloud.kms.schedule_key_deletion(KeyId=id, PendingWindowInDays=state.get("deletionWindowInDays") or 30)


def _retag_key(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.kms.untag_resource(KeyId=id, TagKeys=drop)
    if put:
        tags = [{"TagKey": key, "TagValue": value} for key, value in put.items()]
        cloud.kms.tag_resource(KeyId=id, Tags=tags)


KEY = Resource(
    token="aws:kms/key:Key",
    props={
        "description": text(computed=True),
        "policy": document(computed=True),
        "keyUsage": text(replaces=True, default="ENCRYPT_DECRYPT"),
        "customerMasterKeySpec": text(replaces=True, default="SYMMETRIC_DEFAULT"),
        "multiRegion": flag(replaces=True, computed=True),
        "enableKeyRotation": flag(default=False),
        "isEnabled": flag(default=True),
        "deletionWindowInDays": whole(kept=True),
    },
    outputs={"arn": text(), "keyId": text()},
    create=_create_key,
    settle=_settle_key,
    read=_read_key,
    update=_update_key,
    delete=_delete_key,
    retag=_retag_key,
)


def _create_alias(cloud: Cloud, inputs: State) -> str:
    cloud.kms.create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])
    return str(inputs["name"])


def _read_alias(cloud: Cloud, id: str, known: State) -> State:
    pages = cloud.kms.get_paginator("list_aliases").paginate()
    found = [alias for page in pages for alias in page["Aliases"] if alias["AliasName"] == id]
    if not found or not found[0].get("TargetKeyId"):
        raise Gone(f"{id} does not exist")
    key, wanted = found[0]["TargetKeyId"], str(known.get("targetKeyId", ""))
    return {
        "name": id,
        "targetKeyId": wanted if wanted.endswith(key) else key,  # a program may give the id or the ARN
        "arn": found[0]["AliasArn"],
        "targetKeyArn": cloud.arn("kms", f"key/{key}"),
    }


def _update_alias(cloud: Cloud, change: Change) -> None:
    cloud.kms.update_alias(AliasName=change.id, TargetKeyId=change.new["targetKeyId"])


def _delete_alias(cloud: Cloud, id: str, state: State) -> None:
    with absence("NotFoundException"):
        cloud.kms.delete_alias(AliasName=id)


ALIAS = Resource(
    token="aws:kms/alias:Alias",
    props={"name": text(replaces=True), "targetKeyId": text(required=True)},
    outputs={"arn": text(), "targetKeyArn": text(changes_with="targetKeyId")},
    create=_create_alias,
    read=_read_alias,
    update=_update_alias,
    delete=_delete_alias,
    autonamed="name",
    autoname_prefix="alias/",
)


def _json(document: Any) -> str:
    """A document that boto3 may have parsed already."""
    return document if isinstance(document, str) else json.dumps(document)


RESOURCES = (POLICY, ROLE, ROLE_POLICY, ROLE_ATTACHMENT, PROFILE, KEY, ALIAS)
