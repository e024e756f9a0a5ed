"""The functions of the `aws` package that programs call, such as getSubnet."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import tag_map
from corral.box.provider.provider_errors import RequestRefused


def _parameter(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    decrypted = given.get("withDecryption", True)
    found = cloud.ssm.get_parameter(Name=given["name"], WithDecryption=decrypted)["Parameter"]
    return {
        "id": found["Name"],
        "name": found["Name"],
        "arn": found.get("ARN", ""),
        "type": found["Type"],
        "value": found["Value"],
        "insecureValue": found["Value"] if found["Type"] != "SecureString" else "",
        "version": found["Version"],
        "withDecryption": decrypted,
        "region": cloud.region,
    }


def _parameters_below(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    decrypted, recursive = given.get("withDecryption", True), given.get("recursive", False)
    pages = cloud.ssm.get_paginator("get_parameters_by_path").paginate(
        Path=given["path"], Recursive=recursive, WithDecryption=decrypted
    )
    found = [one for page in pages for one in page["Parameters"]]
    return {
        "id": given["path"],
        "path": given["path"],
        "arns": [one.get("ARN", "") for one in found],
        "names": [one["Name"] for one in found],
        "types": [one["Type"] for one in found],
        "values": [one["Value"] for one in found],
        "recursive": recursive,
        "withDecryption": decrypted,
        "region": cloud.region,
    }


def _caller(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    caller = cloud.sts.get_caller_identity()
    return {
        "id": caller["Account"],
        "accountId": caller["Account"],
        "arn": caller["Arn"],
        "userId": caller["UserId"],
    }


def _public_key(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    found = cloud.kms.get_public_key(KeyId=given["keyId"])
    encoded = base64.b64encode(found["PublicKey"]).decode()
    lines = [encoded[at : at + 64] for at in range(0, len(encoded), 64)]
    return {
        "id": found["KeyId"],
        "arn": found["KeyId"],
        "keyId": given["keyId"],
        "customerMasterKeySpec": found["CustomerMasterKeySpec"],
        "keyUsage": found["KeyUsage"],
        "encryptionAlgorithms": found.get("EncryptionAlgorithms", []),
        "signingAlgorithms": found.get("SigningAlgorithms", []),
        "publicKey": encoded,
        "publicKeyPem": "\n".join(("-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", "")),
        "region": cloud.region,
    }


def _subnet(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = cloud.ec2.describe_subnets(SubnetIds=[given["id"]])["Subnets"]
    return {
        "id": found["SubnetId"],
        "arn": found["SubnetArn"],
        "vpcId": found["VpcId"],
        "cidrBlock": found["CidrBlock"],
        "availabilityZone": found["AvailabilityZone"],
        "availabilityZoneId": found["AvailabilityZoneId"],
        "availableIpAddressCount": found["AvailableIpAddressCount"],
        "defaultForAz": found["DefaultForAz"],
        "mapPublicIpOnLaunch": found["MapPublicIpOnLaunch"],
        "ownerId": found["OwnerId"],
        "state": found["State"],
        "tags": tag_map(found.get("Tags")),
        "region": cloud.region,
    }


def _tagged(cloud: RegionClients, given: Mapping[str, Any]) -> dict[str, Any]:
    request: dict[str, Any] = {}
    if given.get("tagFilters"):
        request["TagFilters"] = [{"Key": one["key"], "Values": one.get("values") or []} for one in given["tagFilters"]]
    if given.get("resourceTypeFilters"):
        request["ResourceTypeFilters"] = given["resourceTypeFilters"]
    if given.get("resourceArnLists"):
        request["ResourceARNList"] = given["resourceArnLists"]
    pages = cloud.resourcegroupstaggingapi.get_paginator("get_resources").paginate(**request)
    found = [one for page in pages for one in page["ResourceTagMappingList"]]
    mappings = [
        {"resourceArn": one["ResourceARN"], "tags": tag_map(one["Tags"]), "complianceDetails": []}
        for one in sorted(found, key=lambda one: str(one["ResourceARN"]))
    ]
    return {**given, "id": cloud.region, "region": cloud.region, "resourceTagMappingLists": mappings}


FUNCTIONS: Mapping[str, tuple[frozenset[str], Callable[[RegionClients, Mapping[str, Any]], dict[str, Any]]]] = {
    "aws:ssm/getParameter:getParameter": (frozenset({"name", "withDecryption", "region"}), _parameter),
    "aws:ssm/getParametersByPath:getParametersByPath": (
        frozenset({"path", "recursive", "withDecryption", "region"}),
        _parameters_below,
    ),
    "aws:kms/getPublicKey:getPublicKey": (frozenset({"keyId", "grantTokens", "region"}), _public_key),
    "aws:ec2/getSubnet:getSubnet": (frozenset({"id", "region"}), _subnet),
    "aws:index/getCallerIdentity:getCallerIdentity": (frozenset(), _caller),
    "aws:resourcegroupstaggingapi/getResources:getResources": (
        frozenset({"tagFilters", "resourceTypeFilters", "resourceArnLists", "region"}),
        _tagged,
    ),
}


def invoke(cloud: RegionClients, token: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a function. Raises RequestRefused for an unknown function or argument."""
    if token not in FUNCTIONS:
        raise RequestRefused("the box's stand-in for the aws provider does not support this function")
    names, call = FUNCTIONS[token]
    for name in sorted(given.keys() - names):
        raise RequestRefused(f"the box's stand-in for the aws provider does not support the argument '{name}'")
    return call(cloud, given)
