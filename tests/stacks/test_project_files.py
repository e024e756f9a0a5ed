"""What the two Pulumi.yaml say to the engine: plain `pulumi up` relies on it, `corral up` says it anyway."""

from __future__ import annotations

import pytest
import yaml

from environments import PROJECT


@pytest.mark.parametrize("stack", ["base", "cluster"])
def test_every_run_looks_at_what_is_there_first(stack: str) -> None:
    project = yaml.safe_load((PROJECT / "stacks" / stack / "Pulumi.yaml").read_text())
    assert project["options"] == {"refresh": "always"}


@pytest.mark.parametrize("stack", ["base", "cluster"])
def test_no_resource_goes_to_a_provider_that_knows_neither_region_nor_tags(stack: str) -> None:
    project = yaml.safe_load((PROJECT / "stacks" / stack / "Pulumi.yaml").read_text())
    assert project["config"]["pulumi:disable-default-providers"] == ["aws"]
