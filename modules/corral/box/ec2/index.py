"""Look up resources by id, where moto scans all of them: keeps a launch of hundreds fast."""

from __future__ import annotations

from typing import Any

WILDCARDS = frozenset("*?[\\")


class IndexedLookups:
    """The EC2 backend's lookups by id."""

    instances_by_id: dict[str, Any]

    def get_instance(self: Any, instance_id: str) -> Any:
        """The instance of that id."""
        found = self.instances_by_id.get(instance_id)
        return found if found is not None else super().get_instance(instance_id)  # type: ignore[misc]

    def get_instance_by_id(self: Any, instance_id: str) -> Any:
        """The instance of that id; None if there is none."""
        return self.instances_by_id.get(instance_id)

    def describe_volumes(self: Any, volume_ids: list[str] | None = None, filters: Any = None) -> Any:
        """Volumes by id or filter."""
        if volume_ids and not filters and all(volume_id in self.volumes for volume_id in volume_ids):
            return [self.volumes[volume_id] for volume_id in volume_ids]
        return super().describe_volumes(volume_ids, filters)  # type: ignore[misc]

    def describe_tags(self: Any, filters: dict[str, list[str]] | None = None) -> Any:
        """The matching tags; those of named resources without a scan."""
        ids, hidden = (filters or {}).get("resource-id"), self.hidden_instances()
        if not ids or len(filters or {}) > 1 or any(WILDCARDS & set(named) for named in ids):
            return [found for found in super().describe_tags(filters) if found["resource_id"] not in hidden]  # type: ignore[misc]
        return [
            found
            for named in ids
            if named not in hidden
            for found in _shown(named, self.tags.get(named, {}), self.resource_type_of(named))
        ]

    def resource_type_of(self: Any, resource_id: str) -> str:
        """The resource type of an id, by its prefix."""
        from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE

        return str(EC2_PREFIX_TO_RESOURCE.get(resource_id.rpartition("-")[0], ""))


def _shown(resource_id: str, tags: dict[str, str], kind: str) -> list[dict[str, str]]:
    return [
        {"resource_id": resource_id, "key": key, "value": value, "resource_type": kind} for key, value in tags.items()
    ]
