"""Machine images."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from finding_lines import NOW, bad, dev, finding_lines

from corral.plan.cluster import plan_image
from corral.preflight.image_check import Ec2Image, ImageFacts, evaluate
from corral.preflight.preflight_findings import PreflightRequest
from corral.spec.models.image import ImageSpec
from environments import dev_cluster

IMAGE = Ec2Image(
    id="ami-1",
    name="Deep Learning Base",
    state="available",
    architecture="x86_64",
    created=NOW - timedelta(days=20),
    deprecated=NOW + timedelta(days=700),
    root_device="/dev/sda1",
    root_gib=75,
)


def facts(**changed: object) -> ImageFacts:
    return ImageFacts(ids={"image": "ami-1"}, images={"ami-1": replace(IMAGE, **changed)})  # type: ignore[arg-type]  # by name


def test_a_new_image_that_fits_is_ok() -> None:
    assert finding_lines(evaluate(dev(), facts())) == [
        "ok head and nodes: ami-1, Deep Learning Base, of 2026-11-02",
        "ok head and nodes: a boot installs the Lustre client of its kernel; available for 6.8.0-1024 to 6.8.0-1033,"
        " 6.14.0-1012 to 6.14.0-1018, 6.17.0-1007 to 6.17.0",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"state": "failed"}, "fail head and nodes: ami-1 is failed"),
        ({"architecture": "arm64"}, "fail head and nodes: ami-1 is for arm64; the instances are x86_64"),
        (
            {"root_device": "/dev/xvda"},
            "fail head and nodes: the root device of ami-1 is /dev/xvda; the templates use /dev/sda1",
        ),
        (
            {"root_gib": 500},
            "fail head and nodes: the root of ami-1 needs 500 GiB; an instance that boots it has 150",
        ),
        (
            {"name": "Deep Learning Base OSS AMI (Ubuntu 22.04) 20260901"},
            "warn head and nodes: ami-1 is called 'Deep Learning Base OSS AMI (Ubuntu 22.04) 20260901'; its profile"
            " is for ubuntu 24.04",
        ),
        ({"deprecated": NOW}, "warn head and nodes: ami-1 has been deprecated since 2026-11-22"),
        (
            {"created": NOW - timedelta(days=181)},
            "warn head and nodes: ami-1 is 181 days old; its drivers and EFA are outdated",
        ),
    ],
)
def test_defects_of_an_image_are_findings(changed: dict[str, object], expected: str) -> None:
    assert bad(evaluate(dev(), facts(**changed))) == [expected]


@pytest.mark.parametrize("name", ["DLAMI (Ubuntu 24.04) 20260901", "ubuntu-noble-24.04-amd64", "ours-7"])
def test_a_name_of_the_profiles_system_or_of_none_is_ok(name: str) -> None:
    assert bad(evaluate(dev(), facts(name=name))) == []


DEBIAN = replace(IMAGE, name="debian-13-amd64-20261108-2651", root_device="/dev/xvda", root_gib=8, deprecated=None)


def on_debian() -> PreflightRequest:
    return dev(replace(dev_cluster(), image=plan_image(ImageSpec(profile="debian-13"), None), lustre=()))


def test_debians_image_fits_its_profile() -> None:
    found = ImageFacts(ids={"image": "ami-1"}, images={"ami-1": DEBIAN})
    assert finding_lines(evaluate(on_debian(), found)) == [
        "ok head and nodes: ami-1, debian-13-amd64-20261108-2651, of 2026-11-02"
    ]


def test_an_old_image_without_drivers_has_old_packages() -> None:
    found = ImageFacts(ids={"image": "ami-1"}, images={"ami-1": replace(DEBIAN, created=NOW - timedelta(days=200))})
    assert bad(evaluate(on_debian(), found)) == [
        "warn head and nodes: ami-1 is 200 days old; its packages are outdated"
    ]


def test_a_debian_of_another_release_is_a_warning() -> None:
    found = ImageFacts(ids={"image": "ami-1"}, images={"ami-1": replace(DEBIAN, name="debian-12-amd64-20260901-2101")})
    assert bad(evaluate(on_debian(), found)) == [
        "warn head and nodes: ami-1 is called 'debian-12-amd64-20260901-2101'; its profile is for debian 13"
    ]


def test_a_missing_image_is_a_finding() -> None:
    found = bad(evaluate(dev(), ImageFacts(ids={"image": "ami-1"})))
    assert found == ["fail head and nodes: ami-1 not found in this account and region, or not shared with it"]


def test_a_missing_parameter_is_a_finding() -> None:
    (line,) = bad(evaluate(dev(), ImageFacts(ids={"image": None})))
    assert line == (
        "fail head and nodes: the parameter /aws/service/deeplearning/ami/x86_64/"
        "base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id is not in us-east-1"
    )


def test_the_lustre_client_of_an_own_image_is_unknown() -> None:
    own = replace(dev_cluster().image, image_id="ami-1", parameter=None, lustre=None)
    found = bad(evaluate(dev(replace(dev_cluster(), image=own)), facts()))
    assert found == ["warn head and nodes: ami-1 is your own; whether it has Lustre's client is unknown"]


def test_a_kernel_with_a_lustre_client_is_ok() -> None:
    assert finding_lines(evaluate(dev(), facts(kernel="6.8.0-1029-aws")))[1] == (
        "ok head and nodes: AWS has a Lustre client for 6.8.0-1029-aws"
    )


def test_a_kernel_without_a_lustre_client_fails() -> None:
    assert bad(evaluate(dev(), facts(kernel="6.11.0-1004-aws"))) == [
        "fail head and nodes: ami-1 boots kernel 6.11.0-1004-aws, for which AWS has no Lustre client"
    ]


def test_without_lustre_its_client_is_not_checked() -> None:
    request = dev(replace(dev_cluster(), lustre=()))
    assert len(finding_lines(evaluate(request, facts(kernel="6.11.0-1004-aws")))) == 1


def test_a_system_without_a_lustre_client_is_a_warning() -> None:
    own = replace(dev_cluster().image, system="ubuntu 26.04")
    found = bad(evaluate(dev(replace(dev_cluster(), image=own)), facts()))
    assert found == ["warn head and nodes: AWS has no Lustre client for ubuntu 26.04"]
