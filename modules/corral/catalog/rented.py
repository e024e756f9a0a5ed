"""Which instance types of the catalogue have an accelerator, the other way round than types tell it."""

from __future__ import annotations

from corral.catalog.accelerators import AcceleratorModel, accelerator_of
from corral.catalog.instances import instance_types


def types_with(model: AcceleratorModel) -> tuple[str, ...]:
    """The shipped types that have this model, sorted by name; none where it is for comparison alone."""
    return tuple(name for name, machine in instance_types().items() if accelerator_of(machine) == model)
