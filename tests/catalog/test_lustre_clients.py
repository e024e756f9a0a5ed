"""Lustre clients by kernel."""

from __future__ import annotations

import pytest

from corral.catalog.aws.images import image_profiles
from corral.catalog.aws.lustre_clients import lustre_clients


@pytest.mark.parametrize(
    ("kernel", "is_there"),
    [
        ("6.8.0-1023-aws", False),
        ("6.8.0-1024-aws", True),
        ("6.8.0-1033-aws", True),
        ("6.8.0-1034-aws", False),
        ("6.11.0-1004-aws", False),
        ("6.17.0-1006-aws", False),
        ("6.17.0-1019-aws", True),
        ("6.18.0-1001-aws", False),
    ],
)
def test_a_kernel_of_ubuntu_24_has_a_client_within_the_ranges_of_the_guide(kernel: str, is_there: bool) -> None:
    assert any(one.is_for(kernel) for one in lustre_clients("ubuntu 24.04")) is is_there


def test_a_deployed_profile_has_an_archive_exactly_if_aws_has_a_client_for_it() -> None:
    deployed = [one for one in image_profiles().values() if not one.box]
    assert {one.name: bool(lustre_clients(one.system)) for one in deployed} == {
        one.name: bool(one.lustre_archive) for one in deployed
    }


def test_the_clients_of_profiles_mount_what_corral_makes() -> None:
    assert {"2.15" in one.servers for one in lustre_clients("ubuntu 24.04")} == {True}


def test_a_system_that_aws_does_not_serve_has_none() -> None:
    assert lustre_clients("debian 12") == ()
