"""Machine images."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from judging import NOW, bad, dev, said

from corral.preflight.images import Facts, Image, judge
from environments import dev_cluster

IMAGE = Image(
    id="ami-1",
    name="Deep Learning Base",
    state="available",
    architecture="x86_64",
    created=NOW - timedelta(days=20),
    deprecated=NOW + timedelta(days=700),
    root_device="/dev/sda1",
    root_gib=75,
)


def facts(**changed: object) -> Facts:
    return Facts(ids={"image": "ami-1"}, images={"ami-1": replace(IMAGE, **changed)})  # type: ignore[arg-type]  # by name


def test_a_new_image_that_fits_is_ok() -> None:
    assert said(judge(dev(), facts())) == [
        "ok head and nodes: ami-1, Deep Learning Base, of 2026-11-02",
        "ok head and nodes: a boot takes the Lustre client of its kernel: there are some for 6.8.0-1024 to 6.8.0-1033,"
        " 6.14.0-1012 to 6.14.0-1018, 6.17.0-1007 to 6.17.0",
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"state": "failed"}, "fail head and nodes: ami-1 is failed"),
        ({"architecture": "arm64"}, "fail head and nodes: ami-1 is for arm64, the machines are x86_64"),
        (
            {"root_device": "/dev/xvda"},
            "fail head and nodes: the root device of ami-1 is /dev/xvda, and the templates say /dev/sda1",
        ),
        (
            {"root_gib": 500},
            "fail head and nodes: the root of ami-1 needs 500 GiB, and a machine with it has 150",
        ),
        (
            {"name": "Deep Learning Base OSS AMI (Ubuntu 22.04) 20260901"},
            "warn head and nodes: ami-1 is called 'Deep Learning Base OSS AMI (Ubuntu 22.04) 20260901', and its profile"
            " is of ubuntu 24.04",
        ),
        ({"deprecated": NOW}, "warn head and nodes: ami-1 is deprecated since 2026-11-22"),
        (
            {"created": NOW - timedelta(days=181)},
            "warn head and nodes: ami-1 is 181 days old: drivers and EFA age",
        ),
    ],
)
def test_what_is_wrong_with_an_image_is_told(changed: dict[str, object], told: str) -> None:
    assert bad(judge(dev(), facts(**changed))) == [told]


@pytest.mark.parametrize("name", ["DLAMI (Ubuntu 24.04) 20260901", "ubuntu-noble-24.04-amd64", "ours-7"])
def test_a_name_of_the_profiles_system_or_of_none_is_ok(name: str) -> None:
    assert bad(judge(dev(), facts(name=name))) == []


def test_an_image_that_is_not_there_is_told() -> None:
    found = bad(judge(dev(), Facts(ids={"image": "ami-1"})))
    assert found == ["fail head and nodes: ami-1 is not in this account and region, or not shared with it"]


def test_a_parameter_that_is_not_there_is_told() -> None:
    (line,) = bad(judge(dev(), Facts(ids={"image": None})))
    assert line == (
        "fail head and nodes: the parameter /aws/service/deeplearning/ami/x86_64/"
        "base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id is not in us-east-1"
    )


def test_of_an_image_of_ones_own_lustres_client_is_not_known() -> None:
    own = replace(dev_cluster().image, image_id="ami-1", parameter=None, lustre=None)
    found = bad(judge(dev(replace(dev_cluster(), image=own)), facts()))
    assert found == ["warn head and nodes: ami-1 is of your own, and whether it has Lustre's client is not known"]


def test_a_kernel_with_a_lustre_client_is_ok() -> None:
    assert said(judge(dev(), facts(kernel="6.8.0-1029-aws")))[1] == (
        "ok head and nodes: there is a Lustre client for 6.8.0-1029-aws"
    )


def test_a_kernel_without_a_lustre_client_fails() -> None:
    assert bad(judge(dev(), facts(kernel="6.11.0-1004-aws"))) == [
        "fail head and nodes: ami-1 boots kernel 6.11.0-1004-aws, for which AWS has no Lustre client"
    ]


def test_where_no_lustre_is_mounted_its_client_is_not_looked_at() -> None:
    wanted = dev(replace(dev_cluster(), lustre=()))
    assert len(said(judge(wanted, facts(kernel="6.11.0-1004-aws")))) == 1


def test_a_system_without_a_lustre_client_is_a_warning() -> None:
    own = replace(dev_cluster().image, system="ubuntu 26.04")
    found = bad(judge(dev(replace(dev_cluster(), image=own)), facts()))
    assert found == ["warn head and nodes: AWS has no Lustre client for ubuntu 26.04"]
