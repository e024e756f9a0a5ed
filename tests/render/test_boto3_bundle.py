"""The agent's library: pure Python, the same bytes everywhere, for every image's Python, with our services alone."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from importlib.metadata import requires, version

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from corral.catalog.aws.images import image_profiles
from corral.render import agent_library
from corral.render.boto3_bundle import SERVICES
from environments import PROJECT

LARGEST = 6 * 1024 * 1024  # bytes: a machine fetches it once
DISTRIBUTIONS = ("boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3")


@pytest.fixture(scope="module")
def names() -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(agent_library())) as archive:
        return archive.getnames()


def test_two_processes_make_the_same_library() -> None:
    program = "import sys; from corral.render import agent_library; sys.stdout.buffer.write(agent_library())"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == agent_library()


def test_the_library_is_no_larger_than_documented() -> None:
    assert len(agent_library()) < LARGEST


def test_nothing_in_it_is_made_for_one_system(names: list[str]) -> None:
    assert {name.rpartition(".")[2] for name in names} == {"gz", "json", "pem", "py"}


def test_it_contains_only_services_that_the_agent_uses(names: list[str]) -> None:
    known = {name.split("/")[2] for name in names if name.startswith("botocore/data/") and name.count("/") > 2}
    assert known == set(SERVICES)


def test_it_contains_every_service_that_the_agent_uses() -> None:
    calls = re.compile(r'(?:_client|_impatient|\bclient)\("([a-z0-9-]+)"')
    sources = (PROJECT / "modules/corral/agent").rglob("*.py")
    used = {service for source in sources for service in calls.findall(source.read_text(encoding="utf-8"))}
    assert used - set(SERVICES) == set()


def test_what_all_services_need_is_in_it(names: list[str]) -> None:
    data = {"_retry", "endpoints", "partitions", "sdk-default-configuration"}
    wanted = {"botocore/cacert.pem", *(f"botocore/data/{name}.json" for name in data)}
    assert wanted - set(names) == set()


def test_no_package_needs_another_that_is_not_in_it() -> None:
    lines = (line for name in DISTRIBUTIONS for line in requires(name) or ())
    needed = {wanted.name for line in lines if (wanted := Requirement(line)) and not wanted.marker}
    assert needed - set(DISTRIBUTIONS) == set()


@pytest.mark.parametrize("profile", image_profiles().values(), ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_every_package_runs_on_the_images_python(name: str, profile: object) -> None:
    from importlib.metadata import metadata

    wanted = metadata(name).get("Requires-Python") or ""
    assert SpecifierSet(wanted).contains(profile.python), f"{name} {version(name)} wants Python {wanted}"  # type: ignore[attr-defined]
