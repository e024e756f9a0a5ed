"""List the supported resource types with their properties, and the functions with their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.box.provider.invokes import FUNCTIONS
from corral.box.provider.property_schema import Prop
from corral.box.provider.resource import Resource
from corral.box.provider.tables import RESOURCES


def list_coverage() -> str:
    """The supported types and functions. `*` marks a required property, `!` one whose change replaces the resource."""
    lines = [*_legend(), *(line for token in sorted(RESOURCES) for line in _type(RESOURCES[token]))]
    for token, (names, _) in sorted(FUNCTIONS.items()):
        lines += [token, f"    arguments: {', '.join(sorted(names)) or 'none'}"]
    return "\n".join(lines) + "\n"


def _legend() -> Iterator[str]:
    yield "* required    ! a change replaces the resource    anything else is refused"


def _type(resource: Resource) -> Iterator[str]:
    yield resource.token
    yield f"    inputs: {', '.join(_words(resource.inputs, ''))}"
    yield f"    outputs: {', '.join(resource.outputs) or 'none'}"


def _words(props: Mapping[str, Prop], path: str) -> Iterator[str]:
    for name, prop in props.items():
        if name == "tagsAll":
            continue
        fields = prop.fields or (prop.item.fields if prop.item else {})
        yield f"{path}{name}{'*' if prop.required else ''}{'!' if prop.replaces else ''}"
        yield from _words(fields, f"{path}{name}.")
