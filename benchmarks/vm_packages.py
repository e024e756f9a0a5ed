"""Measure what a head's boot saves while it installs its packages: two virtual machines of the box, at the same time.

Both begin with the image alone. One installs the packages as a person would, the other as corral's boot does: lists
without translations, and no daemons, initramfs or index of manuals on the way (`agent.host.package_hooks`). A machine
that ends first leaves the other more of the host, so the ratio is at least what is shown. Root, and what
`make vm-life` needs: `.venv/bin/python benchmarks/vm_packages.py`.
"""

import base64
import io
import re
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
from table import Row, print_table

from corral.agent import file_install
from corral.agent.host import package_hooks
from corral.agent.host.packages import UPDATE, head_packages, install_command, of_archives
from corral.box import client
from corral.box.switches import Machines
from corral.catalog.aws.images import VM_PROFILE, find_image_profile
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.stack_files import read_environment

CHECKOUT = Path(__file__).resolve().parents[1]
_LIMIT_S = 3600
_RESULT = re.compile(r"corral-bench: (\d+\.\d)")
_USER_DATA = """#!/usr/bin/python3
import base64, contextlib, io, subprocess, sys, tarfile, time
with tarfile.open(fileobj=io.BytesIO(base64.b64decode({library!r}))) as archive:
    archive.extractall("/opt/bench", filter="data")
sys.path.insert(0, "/opt/bench")
from corral.agent.host.package_hooks import without_hooks
began = time.monotonic()
with without_hooks() if {is_corral} else contextlib.nullcontext():
    for command in {commands!r}:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
seconds = time.monotonic() - began
with open("/dev/console", "w") as console:
    console.write(f"corral-bench: {{seconds:.1f}}\\n")
"""


def main() -> int:
    """Measure and print the table."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as temporary:
        directory = Path(temporary)
        installs = _install(directory)
        box = directory / "box"
        client.start(box, machines=Machines.VM, report=lambda line: print(line, file=sys.stderr))
        try:
            plain, ours = _measure(
                box,
                ((False, [("apt-get", "--quiet", "update"), installs]), (True, [UPDATE, installs])),
            )
        finally:
            client.stop(box)
    print_table([Row(what="packages of an emulated head, plain apt beside it", unit="s", ours=ours, theirs=plain)])
    return 0


def _install(directory: Path) -> Sequence[str]:
    """The command that installs the packages of the head of tools/vm_life."""
    stacks = directory / "stacks"
    shutil.copytree(CHECKOUT / "stacks", stacks, ignore=shutil.ignore_patterns("__pycache__"))
    for project in ("base", "cluster"):
        source = CHECKOUT / "tools/vm_life/environment" / f"Pulumi.{project}.yaml"
        shutil.copyfile(source, stacks / project / "Pulumi.vm.yaml")
    environment = read_environment(stacks, "vm")
    plan = plan_cluster(environment.cluster, plan_base(environment.base), image_profile=VM_PROFILE)
    return install_command(of_archives(head_packages(plan)), "")


def _measure(box: Path, machines: Sequence[tuple[bool, list[Sequence[str]]]]) -> list[float]:
    """The seconds of each machine: whether it is corral's, and its commands."""
    ec2, image = _client(box, "ec2"), _image(box)
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.1.0/24")["Subnet"]["SubnetId"]
    ids = [
        ec2.run_instances(
            ImageId=image,
            InstanceType="c7i.large",
            MinCount=1,
            MaxCount=1,
            SubnetId=subnet,
            UserData=_USER_DATA.format(library=_library(), is_corral=is_corral, commands=commands),
        )["Instances"][0]["InstanceId"]
        for is_corral, commands in machines
    ]
    return [_result(box / "machines/consoles" / one) for one in ids]


def _result(console: Path) -> float:
    """The seconds that a machine wrote to its console."""
    deadline = time.monotonic() + _LIMIT_S
    while time.monotonic() < deadline:
        if found := _RESULT.search(console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""):
            return float(found[1])
        time.sleep(5)
    raise SystemExit(f"no result within {_LIMIT_S} s: {console}")


def _library() -> str:
    """The modules of the agent that a machine needs, as base64 of an archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for module in (file_install, package_hooks):
            archive.add(str(module.__file__), f"{module.__name__.replace('.', '/')}.py")
    return base64.b64encode(packed.getvalue()).decode()


def _image(box: Path) -> str:
    parameter = find_image_profile(VM_PROFILE).image_parameter
    return str(_client(box, "ssm").get_parameter(Name=parameter)["Parameter"]["Value"])


def _client(box: Path, service: str) -> Any:
    names = client.environment(box)
    return boto3.client(
        service,
        endpoint_url=names["AWS_ENDPOINT_URL"],
        region_name=names["AWS_REGION"],
        aws_access_key_id=names["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=names["AWS_SECRET_ACCESS_KEY"],
    )


if __name__ == "__main__":
    sys.exit(main())
