"""What the provider's tests share: the box as the provider's own clients see it, without an engine."""

from __future__ import annotations

import pytest

from corral.box.control import BoxStatus
from corral.box.provider.cloud import Clients, Cloud


@pytest.fixture
def cloud(box: BoxStatus) -> Cloud:
    """An empty cloud in us-east-1."""
    return Cloud(Clients(str(box.url)), "us-east-1")
