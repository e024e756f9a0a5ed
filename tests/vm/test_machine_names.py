"""How `make vm-life` finds a machine of the cluster by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tools.vm_life.cluster import machine_name


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ({"Name": "corral-vm-head"}, "head"),
        ({"Name": "corral-vm-login-1", "corral:login": "login-1"}, "login-1"),
        ({"corral:nodes": "cpu-[3-4]"}, "cpu-4"),
    ],
)
def test_a_machine_is_named_by_its_tags(tags: Mapping[str, str], name: str) -> None:
    instance: Mapping[str, Any] = {
        "AmiLaunchIndex": 1,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    assert machine_name(instance) == name
