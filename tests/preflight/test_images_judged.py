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
    assert said(judge(dev(), facts())) == ["ok head and nodes: ami-1, Deep Learning Base, of 2026-11-02"]


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
        ({"deprecated": NOW}, "warn head and nodes: ami-1 is deprecated since 2026-11-22"),
        (
            {"created": NOW - timedelta(days=181)},
            "warn head and nodes: ami-1 is 181 days old: drivers and EFA age",
        ),
    ],
)
def test_what_is_wrong_with_an_image_is_told(changed: dict[str, object], told: str) -> None:
    assert bad(judge(dev(), facts(**changed))) == [told]


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
