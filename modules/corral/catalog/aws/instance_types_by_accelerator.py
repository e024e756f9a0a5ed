"""Which accelerator an instance type has, and which types have an accelerator."""

from __future__ import annotations

from corral.catalog.accelerators.accelerators import AcceleratorModel, accelerators
from corral.catalog.aws.instance_types import InstanceType, instance_types


def accelerator_of(machine: InstanceType) -> AcceleratorModel | None:
    """Return the accelerator of this type; None if it has none, or if the catalog has no figures for it."""
    if machine.accelerator is None:
        return None
    return next((model for model in accelerators().values() if machine.family in model.on_aws), None)


def types_with(model: AcceleratorModel) -> tuple[str, ...]:
    """Return the shipped types with this model, sorted by name; empty if the model is only for comparison."""
    return tuple(name for name, machine in instance_types().items() if accelerator_of(machine) == model)
