"""Every input of the stacks is one that the official provider's schema allows: a known argument of its type.

The programs of the shipped environments run with Pulumi's mocks. `official_schema.json` is what the provider of the
SDK's version exports (tests/box/provider); for what a newer one changes, `make provider-update`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import config as pulumi_config

from corral.plan.base import plan_base
from corral.spec.yaml.stack_files import read_environment
from corral.spec.yaml.yaml_reader import read_document
from corral.stacks import base_program, cluster_program
from environments import PROJECT
from recorded import ACCOUNT, Recorder, record
from render.plans import PUBLIC_KEY

Schema = Mapping[str, Mapping[str, Any]]
OFFICIAL = json.loads((PROJECT / "tests/box/provider/official_schema.json").read_text(encoding="utf-8"))["resources"]
PROGRAMS: Mapping[str, Callable[[], None]] = {"base": base_program.program, "cluster": cluster_program.program}
ENVIRONMENTS = ("dev", "train", "mixed")
# Where Pulumi's SDK differs from the schema of HashiCorp's provider, and why.
OF_THE_SDK: Mapping[str, str] = {
    "aws:cloudwatch/metricAlarm:MetricAlarm name is required": "Pulumi names what has no name",
    "aws:ec2/placementGroup:PlacementGroup name is required": "Pulumi names what has no name",
    "aws:fsx/lustreFileSystem:LustreFileSystem subnetIds is str, not List": "Pulumi flattens a list of at most one",
    "aws:s3/bucketObjectv2:BucketObjectv2 source is FileAsset, not String": "Pulumi passes files as assets",
}
TYPES: Mapping[str, tuple[type, ...]] = {
    "String": (str,),
    "Bool": (bool,),
    "Int": (int, float),
    "Float": (int, float),
    "List": (list,),
    "Set": (list,),
    "Map": (dict,),
}


@dataclass(kw_only=True)
class Account(Recorder):
    """An account with a deployed base: answers the functions that the programs call, and the base's outputs."""

    outputs: Mapping[str, Any]

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """The outputs of the base's stack, or a new resource."""
        if args.typ == "pulumi:pulumi:StackReference":
            return args.name, {"outputs": dict(self.outputs)}
        id, state = super().new_resource(args)
        return id, {"latestVersion": 1, "zoneId": id, **state}

    def call(self, args: pulumi.runtime.MockCallArgs) -> dict[str, Any]:
        """An answer of a new account."""
        return {
            "aws:index/getCallerIdentity:getCallerIdentity": {"accountId": ACCOUNT},
            "aws:resourcegroupstaggingapi/getResources:getResources": {"resourceTagMappingLists": []},
            "aws:ssm/getParametersByPath:getParametersByPath": {"names": [], "values": []},
            "aws:ssm/getParameter:getParameter": {"value": "ami-1"},
            "aws:ec2/getSubnet:getSubnet": {"id": "subnet-1", "availabilityZone": "us-east-1a"},
            "aws:kms/getPublicKey:getPublicKey": {"publicKeyPem": PUBLIC_KEY},
        }[args.token]


def outputs_of(environment: str) -> Mapping[str, Any]:
    """What the base of the environment exports."""
    plan = plan_base(read_environment(PROJECT, environment).base)
    zones = [zone.zone_id for zone in plan.zones]
    words = ("vpc", "bucket", "bucket_arn", "key_arn", "home", "home_group", "lustre_group", "public_key")
    return {
        **{word: word for word in words},
        "subnets": {zone: f"subnet-{zone}" for zone in zones},
        "zone_names": {zone: f"zone-{zone}" for zone in zones},
        "lustre": {system.name: ["fs-1", "fs-1.fsx", "mount", "arn:fs-1"] for system in plan.lustre},
    }


def path_differences(schema: Schema, inputs: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """One line for each input that the schema lacks or has with another type, and each required one that is missing."""
    own = {path.removeprefix(above): one for path, one in schema.items() if path.startswith(above)}
    for name, one in own.items():
        if "." not in name and one.get("required") and name not in inputs:
            yield f"{above}{name} is required"
    for name, value in inputs.items():
        known = own.get(name)
        if known is None:
            yield f"{above}{name} is unknown"
        elif not (known.get("required") or known.get("optional")):
            yield f"{above}{name} is no argument"
        elif value is not None:
            yield from value_differences(schema, known["type"], value, f"{above}{name}")


def value_differences(schema: Schema, kind: str, value: Any, path: str) -> Iterator[str]:
    """The same for a value. Pulumi has a block that may be there once as an object, Terraform as a list."""
    blocks = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    if any(other.startswith(f"{path}.") for other in schema) and kind != "Map":
        for one in blocks:
            yield from path_differences(schema, one, f"{path}.")
        if not isinstance(value, (dict, list)):
            yield f"{path} is {type(value).__name__}, not a block"
    elif not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "Bool"):
        yield f"{path} is {type(value).__name__}, not {kind}"


@pytest.fixture(scope="module", params=[(name, kind) for name in ENVIRONMENTS for kind in PROGRAMS], ids="-".join)
def deployed(request: pytest.FixtureRequest) -> Recorder:
    """What the program of a shipped environment registers."""
    name, kind = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(PROJECT / "stacks" / kind)
        patch.setattr(cluster_program, "sign_next", lambda *_: "manifest")  # KMS is asked by boto3, not by Pulumi
        document = read_document(Path(f"Pulumi.{name}.yaml").read_bytes()).value["config"]
        texts = {key: one if isinstance(one, str) else json.dumps(one, sort_keys=True) for key, one in document.items()}
        pulumi_config.set_all_config(texts)
        recorder = Account(outputs=outputs_of(name))
        return record(PROGRAMS[kind], recorder, stack=name)


def test_every_input_is_an_argument_of_the_official_provider(deployed: Recorder) -> None:
    lines = {
        f"{token} {line}"
        for token, inputs in deployed.resources.values()
        if token.startswith("aws:")
        for line in path_differences(OFFICIAL[token]["properties"], inputs)
    }
    assert sorted(lines - OF_THE_SDK.keys()) == []


SCHEMA: Schema = {
    "name": {"type": "String", "required": True},
    "size": {"type": "Int", "optional": True},
    "arn": {"type": "String", "computed": True},
    "tags": {"type": "Map", "optional": True},
    "groups": {"type": "Set", "optional": True},
    "disk": {"type": "List", "optional": True},
    "disk.kind": {"type": "String", "required": True},
}


@pytest.mark.parametrize(
    ("inputs", "difference"),
    [
        ({}, "name is required"),
        ({"name": "a", "sise": 1}, "sise is unknown"),
        ({"name": "a", "arn": "arn:a"}, "arn is no argument"),
        ({"name": "a", "size": "1"}, "size is str, not Int"),
        ({"name": "a", "size": True}, "size is bool, not Int"),
        ({"name": "a", "groups": "sg-1"}, "groups is str, not Set"),
        ({"name": "a", "disk": {}}, "disk.kind is required"),
        ({"name": "a", "disk": [{"kind": "gp3"}, {"kind": 3.0}]}, "disk.kind is float, not String"),
        ({"name": "a", "disk": "gp3"}, "disk is str, not a block"),
    ],
)
def test_an_input_that_the_schema_does_not_allow_is_found(inputs: Mapping[str, Any], difference: str) -> None:
    assert list(path_differences(SCHEMA, inputs)) == [difference]


def test_inputs_of_the_schema_have_no_differences() -> None:
    inputs = {"name": "a", "size": 1, "tags": {"corral:base": "dev"}, "groups": ["sg-1"], "disk": {"kind": "gp3"}}
    assert list(path_differences(SCHEMA, inputs)) == []
