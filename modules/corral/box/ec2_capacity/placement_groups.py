"""Placement groups, which moto lacks: create, describe and delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.utils import generic_filter, random_id

from corral.box.api_errors import ApiError

STRATEGIES = ("cluster", "spread", "partition")


@dataclass(kw_only=True, eq=False)
class PlacementGroup:
    """A placement group; the EC2 backend holds its tags."""

    ec2_backend: Any
    id: str
    name: str
    strategy: str
    partition_count: int | None

    @property
    def arn(self) -> str:
        """The Amazon resource name."""
        backend = self.ec2_backend
        return f"arn:{backend.partition}:ec2:{backend.region_name}:{backend.account_id}:placement-group/{self.name}"

    def get_filter_value(self, name: str, _method: str | None = None) -> Any:
        """The value for a filter of DescribePlacementGroups."""
        tags = self.ec2_backend.tags.get(self.id, {})
        if name.startswith("tag:"):
            return tags.get(name.removeprefix("tag:"))
        values = {
            "group-name": self.name,
            "group-arn": self.arn,
            "state": "available",
            "strategy": self.strategy,
            "tag-key": list(tags),
        }
        if name not in values:
            raise NotImplementedError(f"The filter '{name}'")
        return values[name]

    def describe(self) -> dict[str, Any]:
        """The group as in the API."""
        return {
            "GroupName": self.name,
            "GroupId": self.id,
            "GroupArn": self.arn,
            "State": "available",
            "Strategy": self.strategy,
            "PartitionCount": self.partition_count,
            "Tags": [{"Key": key, "Value": value} for key, value in self.ec2_backend.tags.get(self.id, {}).items()],
        }


class PlacementGroups:
    """The EC2 backend's placement groups, by name."""

    placement_groups: dict[str, PlacementGroup]

    def get_placement_group(self, name: str) -> PlacementGroup:
        """The group of that name or id. Raises ApiError if there is none."""
        for group in self.placement_groups.values():
            if name in (group.name, group.id):
                return group
        raise ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")

    def create_placement_group(self: Any, name: str, strategy: str, partitions: int | None) -> PlacementGroup:
        """Create a group."""
        if strategy not in STRATEGIES:
            raise ApiError("InvalidParameterValue", f"Invalid value '{strategy}' for strategy.")
        if name in self.placement_groups:
            raise ApiError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
        group = PlacementGroup(
            ec2_backend=self, id=random_id("pg"), name=name, strategy=strategy, partition_count=partitions
        )
        self.placement_groups[name] = group
        return group

    def delete_placement_group(self: Any, name: str) -> None:
        """Delete a group without instances and active reservations."""
        group = self.get_placement_group(name)
        reserved = self.reservations_in_group(group.arn)
        used = any(i.placement.group_name == group.name and i.state != "terminated" for i in self.all_instances())
        if used or reserved:
            raise ApiError(
                "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted."
            )
        del self.placement_groups[group.name]
        self.tags.pop(group.id, None)


class PlacementGroupActions:
    """The actions on placement groups."""

    def create_placement_group(self: Any) -> ActionResult:
        """CreatePlacementGroup."""
        self.error_on_dryrun()
        name = self._get_param("GroupName")
        if not name:
            raise ApiError("MissingParameter", "The request must contain the parameter groupName")
        tags = self._parse_tag_specification("placement-group").get("placement-group", {})
        group = self.ec2_backend.create_placement_group(
            name, self._get_param("Strategy", "cluster"), self._get_param("PartitionCount")
        )
        self.ec2_backend.create_tags([group.id], tags)
        return ActionResult({"PlacementGroup": group.describe()})

    def describe_placement_groups(self: Any) -> ActionResult:
        """DescribePlacementGroups."""
        backend = self.ec2_backend
        named = [*self._get_param("GroupNames", []), *self._get_param("GroupIds", [])]
        groups = [backend.get_placement_group(name) for name in named] or list(backend.placement_groups.values())
        shown = generic_filter(self._filters_from_querystring(), groups)
        return ActionResult({"PlacementGroups": [group.describe() for group in shown]})

    def delete_placement_group(self: Any) -> ActionResult:
        """DeletePlacementGroup."""
        self.error_on_dryrun()
        self.ec2_backend.delete_placement_group(self._get_param("GroupName"))
        return EmptyResult()
