"""Names of Pulumi stack files: `Pulumi.<name>.yaml`, next to the project's Pulumi.yaml."""

from pathlib import Path


def stack_of(file: Path) -> str:
    """The name of the stack that this file declares."""
    return file.name.removeprefix("Pulumi.").removesuffix(".yaml")


def stack_names(folder: Path) -> tuple[str, ...]:
    """The stacks that this directory of a project has files of, sorted; none if it does not exist."""
    return tuple(sorted(stack_of(file) for file in folder.glob("Pulumi.?*.yaml")))
