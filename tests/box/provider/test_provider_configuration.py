"""The arguments of aws.Provider, and the valid endpoints."""

from __future__ import annotations

import pytest

from corral.box.provider.aws_clients import box_endpoint
from corral.box.provider.configuration import UnknownArgument, parse_settings
from corral.box.provider.provider_errors import BoxUnreachable


def test_default_tags_come_as_json() -> None:
    settings = parse_settings({"region": "us-west-2", "defaultTags": '{"tags": {"env": "dev"}}', "version": "7.51.1"})
    assert (settings.region, settings.default_tags) == ("us-west-2", {"env": "dev"})


def test_an_unknown_argument_of_the_provider_is_named() -> None:
    with pytest.raises(UnknownArgument) as refused:
        parse_settings({"region": "us-east-1", "assumeRoles": "[]"})
    assert str(refused.value) == "the box's stand-in for the aws provider does not support the argument 'assumeRoles'"


def test_a_missing_endpoint_is_refused() -> None:
    with pytest.raises(BoxUnreachable) as refused:
        box_endpoint({})
    expected = 'AWS_ENDPOINT_URL is not set; this provider calls only a box - eval "$(corral box env)"'
    assert str(refused.value) == expected


@pytest.mark.parametrize("url", ["https://ec2.us-east-1.amazonaws.com", "http://10.0.0.1:80", "http://box.example:80"])
def test_an_endpoint_on_another_machine_is_refused(url: str) -> None:
    with pytest.raises(BoxUnreachable):
        box_endpoint({"AWS_ENDPOINT_URL": url})


@pytest.mark.parametrize("url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_a_loopback_endpoint_is_valid(url: str) -> None:
    assert box_endpoint({"AWS_ENDPOINT_URL": url}) == url
