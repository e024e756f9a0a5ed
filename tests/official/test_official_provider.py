"""AWS's own provider has exactly the types and functions of the stand-in; what is compared after a life of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tools.official_run.comparison import call_differences, changing_calls, output_differences

from corral.box.provider.invokes import FUNCTIONS
from corral.box.provider.tables import RESOURCES

ROOT = Path(__file__).parents[2]
SERVICE = "github.com/hashicorp/terraform-provider-aws/internal/service/"
SDK = "github.com/aws/aws-sdk-go-v2/service/"
TOKENS = json.loads((ROOT / "tools/official_provider/tokens.json").read_text(encoding="utf-8"))


def test_it_has_the_types_of_the_stand_in() -> None:
    assert sorted(TOKENS["resources"].values()) == sorted(RESOURCES)


def test_it_has_the_functions_of_the_stand_in() -> None:
    assert sorted(TOKENS["functions"].values()) == sorted(FUNCTIONS)


def test_only_the_services_of_these_types_are_compiled(tmp_path: Path) -> None:
    internal = tmp_path / "internal"
    files = {
        "service/ec2/vpc.go": "c.EC2Client(ctx)",
        "service/ec2/vpc_ipam_organization_admin_account.go": "",
        "service/ec2/service_package_gen.go": "",
        "service/ec2/sweep.go": "",
        "service/glue/job.go": "c.GlueClient(ctx)",
        "provider/sdkv2/service_packages_gen.go": f'\t"{SERVICE}ec2"\n\t"{SERVICE}glue"\n'
        "\t\tec2.ServicePackage(ctx),\n\t\tglue.ServicePackage(ctx),\n",
        "conns/awsclient_gen.go": f'import (\n\t"{SDK}ec2"\n\t"{SDK}glue"\n)\n\n'
        "func (c *AWSClient) EC2Client(ctx context.Context) *ec2.Client {\n\treturn 1\n}\n\n"
        "func (c *AWSClient) GlueClient(ctx context.Context) *glue.Client {\n\treturn 2\n}\n\n",
    }
    for name, text in files.items():
        (internal / name).parent.mkdir(parents=True, exist_ok=True)
        (internal / name).write_text(text)
    # As a program of its own: the setup runs before anything is installed.
    program = "import sys, pathlib, official_provider; official_provider.cut(pathlib.Path(sys.argv[1]))"
    prepare = {**os.environ, "PYTHONPATH": str(ROOT / "tools/prepare")}
    subprocess.run([sys.executable, "-c", program, tmp_path], env=prepare, check=True)
    left = "".join(sorted(path.read_text() for path in internal.rglob("*.go")))
    assert ("glue" in left, "Glue" in left, "ec2.ServicePackage" in left, "ec2.Client" in left) == (
        False,
        False,
        True,
        True,
    )
    assert sorted(path.name for path in (internal / "service").rglob("*.go")) == ["service_package_gen.go", "vpc.go"]


def test_calls_that_read_or_fail_are_not_compared() -> None:
    calls = [
        {"service": "ec2", "action": "CreateVpc", "status": 200},
        {"service": "ec2", "action": "CreateVpc", "status": 400},
        {"service": "ec2", "action": "DescribeVpcs", "status": 200},
    ]
    assert changing_calls(calls) == {"ec2:CreateVpc": 1}


def test_an_action_that_one_provider_calls_more_often_is_a_difference() -> None:
    assert call_differences({"s3:PutObject": 3, "ec2:CreateVpc": 1}, {"s3:PutObject": 2, "ec2:CreateVpc": 1}) == [
        ("s3:PutObject", 3, 2)
    ]


def resource(**outputs: object) -> dict[str, object]:
    return {
        "urn": "urn:pulumi:dev::corral-base::corral:aws:Network$aws:ec2/vpc:Vpc::network-vpc",
        "type": "aws:ec2/vpc:Vpc",
        "custom": True,
        "outputs": outputs,
    }


def test_other_ids_and_empty_values_are_no_difference() -> None:
    theirs = resource(id="vpc-0123456789abcdef0", ipv6CidrBlock="", tags={"b": "2", "a": "1"}, __meta="{}")
    ours = resource(id="vpc-ffffffff12345678", tags={"a": "1", "b": "2"})
    assert output_differences([theirs], [ours]) == []


def test_another_value_is_a_difference() -> None:
    assert output_differences([resource(enableDnsSupport=True)], [resource()]) == [
        ("aws:ec2/vpc:Vpc", "enableDnsSupport", "True", "")
    ]


def test_a_resource_that_only_one_has_is_a_difference() -> None:
    assert output_differences([resource()], []) == [("corral:aws:Network$aws:ec2/vpc:Vpc", "", "declared", "missing")]
