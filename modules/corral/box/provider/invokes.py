"""The functions of the `aws` package that programs call: what they ask AWS, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Refused
from corral.box.provider.translate import tag_map


def _parameter(cloud: Cloud, given: Mapping[str, Any]) -> dict[str, Any]:
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


def _caller(cloud: Cloud, given: Mapping[str, Any]) -> dict[str, Any]:
    caller = cloud.sts.get_caller_identity()
    return {
        "id": caller["Account"],
        "accountId": caller["Account"],
        "arn": caller["Arn"],
        "userId": caller["UserId"],
    }


def _subnet(cloud: Cloud, given: Mapping[str, Any]) -> dict[str, Any]:
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


def _tagged(cloud: Cloud, given: Mapping[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    if given.get("tagFilters"):
        asked["TagFilters"] = [{"Key": one["key"], "Values": one.get("values") or []} for one in given["tagFilters"]]
    if given.get("resourceTypeFilters"):
        asked["ResourceTypeFilters"] = given["resourceTypeFilters"]
    if given.get("resourceArnLists"):
        asked["ResourceARNList"] = given["resourceArnLists"]
    pages = cloud.resourcegroupstaggingapi.get_paginator("get_resources").paginate(**asked)
    found = [one for page in pages for one in page["ResourceTagMappingList"]]
    mappings = [
        {"resourceArn": one["ResourceARN"], "tags": tag_map(one["Tags"]), "complianceDetails": []}
        for one in sorted(found, key=lambda one: str(one["ResourceARN"]))
    ]
    return {**given, "id": cloud.region, "region": cloud.region, "resourceTagMappingLists": mappings}


KNOWN: Mapping[str, tuple[frozenset[str], Callable[[Cloud, Mapping[str, Any]], dict[str, Any]]]] = {
    "aws:ssm/getParameter:getParameter": (frozenset({"name", "withDecryption", "region"}), _parameter),
    "aws:ec2/getSubnet:getSubnet": (frozenset({"id", "region"}), _subnet),
    "aws:index/getCallerIdentity:getCallerIdentity": (frozenset(), _caller),
    "aws:resourcegroupstaggingapi/getResources:getResources": (
        frozenset({"tagFilters", "resourceTypeFilters", "resourceArnLists", "region"}),
        _tagged,
    ),
}


def invoked(cloud: Cloud, token: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a function. Raises Refused for a function or an argument that is not known."""
    if token not in KNOWN:
        raise Refused("the box's stand-in for the aws provider has no such function")
    names, answer = KNOWN[token]
    for name in sorted(given.keys() - names):
        raise Refused(f"the box's stand-in for the aws provider does not know the argument '{name}'")
    return answer(cloud, given)
