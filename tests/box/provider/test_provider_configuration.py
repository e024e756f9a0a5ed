"""The arguments of aws.Provider, and where the provider may talk to."""

from __future__ import annotations

import pytest

from corral.box.provider.cloud import endpoint
from corral.box.provider.configuration import UnknownSetting, configured
from corral.box.provider.problems import Unreachable


def test_default_tags_come_as_json() -> None:
    settings = configured({"region": "us-west-2", "defaultTags": '{"tags": {"env": "dev"}}', "version": "7.51.1"})
    assert (settings.region, settings.default_tags) == ("us-west-2", {"env": "dev"})


def test_an_unknown_argument_of_the_provider_is_named() -> None:
    with pytest.raises(UnknownSetting) as refused:
        configured({"region": "us-east-1", "assumeRoles": "[]"})
    assert str(refused.value) == "the box's stand-in for the aws provider does not know the argument 'assumeRoles'"


def test_without_an_endpoint_it_refuses() -> None:
    with pytest.raises(Unreachable) as refused:
        endpoint({})
    expected = 'AWS_ENDPOINT_URL is not set: this provider talks to a box only - eval "$(corral box env)"'
    assert str(refused.value) == expected


@pytest.mark.parametrize("url", ["https://ec2.us-east-1.amazonaws.com", "http://10.0.0.1:80", "http://box.example:80"])
def test_an_endpoint_on_another_machine_is_refused(url: str) -> None:
    with pytest.raises(Unreachable):
        endpoint({"AWS_ENDPOINT_URL": url})


@pytest.mark.parametrize("url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_a_loopback_endpoint_is_taken(url: str) -> None:
    assert endpoint({"AWS_ENDPOINT_URL": url}) == url
