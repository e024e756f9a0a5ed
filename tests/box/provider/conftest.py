"""Fixtures of the provider's tests: the clients of a box, without an engine."""

from __future__ import annotations

import pytest

from corral.box import client
from corral.box.client import BoxStatus
from corral.box.provider.aws_clients import ClientCache, RegionClients


@pytest.fixture
def cloud(box: BoxStatus) -> RegionClients:
    """An empty cloud in us-east-1."""
    return RegionClients(ClientCache(str(box.url), client.environment(box.dir)), "us-east-1")
