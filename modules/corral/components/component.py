"""The base class of all components: parents and names their children."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from corral.model.tags import KEEP_TAG


class Component(pulumi.ComponentResource):
    """A component whose children are parented to it and named after it. `title` starts each child's Name tag."""

    def __init__(self, token: str, name: str, title: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(f"corral:aws:{token}", name, None, opts)
        self._component_name, self._title = name, title

    def child(self, key: str) -> str:
        """The resource name of the child with this key; it is the child's identity and never changes."""
        return f"{self._component_name}-{key}"

    def tags(self, key: str, *, keep: str | None = None) -> Mapping[str, str]:
        """The Name tag of the child with this key; `keep`: the tag by which a later deployment finds it again."""
        return {"Name": f"{self._title}-{key}", **({KEEP_TAG: keep} if keep else {})}

    def child_options(self, **more: object) -> pulumi.ResourceOptions:
        """The options of an ordinary child."""
        return pulumi.ResourceOptions(parent=self, **more)  # type: ignore[arg-type]

    def retained_options(self, import_id: str | None = None, **more: object) -> pulumi.ResourceOptions:
        """The options of a child that holds data: it survives every destroy, and an existing one is imported."""
        options = pulumi.ResourceOptions(parent=self, protect=True, retain_on_delete=True, import_=import_id)
        return pulumi.ResourceOptions.merge(options, pulumi.ResourceOptions(**more))  # type: ignore[arg-type]
