"""The Resource Groups Tagging API.

IAM roles and users are not listed, as on AWS; policies, instance profiles and hosted zones only in us-east-1.
Source: Resource Groups Tagging API reference, "Services that support the Resource Groups Tagging API".
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import moto.resourcegroupstaggingapi.urls
from moto.core.resource_tagging import TaggedResource, iter_taggable_backends, make_tag_matcher, match_resource_type
from moto.core.utils import utcnow
from moto.resourcegroupstaggingapi.models import ResourceGroupsTaggingAPIBackend

from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.box.api_errors import ApiError
from corral.box.delays import STALE_TAGS, duration, is_aws_like, seconds
from corral.box.faults import store
from corral.box.faults.records import StaleTags

GLOBAL_REGION = "us-east-1"
EC2_KINDS = {  # collections of the EC2 backend that moto leaves out
    "launch-template": "launch_templates",
    "placement-group": "placement_groups",
    "vpc-endpoint": "vpc_end_points",
    "network-acl": "network_acls",
    "key-pair": "key_pairs",
}
DELETED_STATES = ("terminated", "deleted")
_DELETING = ("Delete", "Release", "Terminate")
_GLOBAL = frozenset({"iam", "route53"})


class TaggedEC2:
    """The EC2 backend's tagged resources."""

    def iter_tagged_resources(self: Any) -> Iterator[TaggedResource]:
        """The tagged resources that still exist."""
        oldest = utcnow() - duration(STALE_TAGS)
        ended = (i for i in self.all_instances() if i.state in DELETED_STATES)
        gone = {i.id for i in ended if not i.ended or i.ended <= oldest} | self.hidden_instances()
        gone |= {gateway.id for gateway in self.nat_gateways.values() if gateway.state in DELETED_STATES}
        for resource in super().iter_tagged_resources():  # type: ignore[misc]
            if resource.arn.rpartition("/")[2] not in gone:
                yield resource
        for kind, attribute in EC2_KINDS.items():
            for held in getattr(self, attribute).values():
                yield self._tagged(kind, held.id)
        for address in self.addresses:
            yield self._tagged("elastic-ip", address.allocation_id)
        for group in [group for groups in self.groups.values() for group in groups.values()]:
            for rule in [*group.ingress_rules, *group.egress_rules]:
                yield self._tagged("security-group-rule", rule.id)

    def _tagged(self: Any, kind: str, identity: str) -> TaggedResource:
        arn = f"arn:{self.partition}:ec2:{self.region_name}:{self.account_id}:{kind}/{identity}"
        return TaggedResource(arn=arn, tags=dict(self.tags.get(identity, {})), resource_type=f"ec2:{kind}")


class BoxTagging(ResourceGroupsTaggingAPIBackend):
    """The tagging API of one account and region."""

    _url_module = moto.resourcegroupstaggingapi.urls
    stale: dict[str, TaggedResource]  # by ARN, what was listed during the fault StaleTags
    deleted: dict[str, tuple[float, TaggedResource]]  # by ARN, since when it is gone, in an aws-like box

    def get_resources(
        self,
        pagination_token: str | None = None,
        resources_per_page: int = 50,
        tags_per_page: int = 100,
        tag_filters: Any = None,
        resource_type_filters: Any = None,
        resource_arn_list: Any = None,
    ) -> tuple[str, list[TaggedResource]]:
        """A page of the resources that match, by ARN, and the token of the next page."""
        if pagination_token and not pagination_token.isdigit():
            raise ApiError("PaginationTokenExpiredException", "The pagination token is not valid.")
        matches = make_tag_matcher(tag_filters)
        found = [
            resource
            for resource in self._listed()
            if resource.tags
            and matches(resource.tags)
            and match_resource_type(resource.resource_type, resource_type_filters)
            and (not resource_arn_list or resource.arn in resource_arn_list)
        ]
        found.sort(key=lambda resource: resource.arn)
        start = int(pagination_token or 0)
        end = start + resources_per_page
        return (str(end) if end < len(found) else ""), found[start:end]

    def _listed(self) -> Iterator[TaggedResource]:
        current = {resource.arn: resource for resource in self._all()}
        is_stale = any(isinstance(fault, StaleTags) for fault in store.faults())
        self.stale = {**getattr(self, "stale", {}), **current} if is_stale else {}
        yield from {**self._recently_deleted(), **self.stale, **current}.values()

    def tagged(self) -> dict[str, TaggedResource]:
        """The existing resources with tags, by ARN."""
        return {resource.arn: resource for resource in self._all() if resource.tags}

    def remember_deleted(self, before: Mapping[str, TaggedResource]) -> None:
        """Go on listing what is gone of these."""
        now, current = time.time(), self.tagged()
        gone = {arn: (now, resource) for arn, resource in before.items() if arn not in current}
        self.deleted = {**getattr(self, "deleted", {}), **gone}

    def _recently_deleted(self) -> dict[str, TaggedResource]:
        oldest = time.time() - seconds(STALE_TAGS)
        return {arn: resource for arn, (at, resource) in getattr(self, "deleted", {}).items() if at > oldest}

    def _all(self) -> Iterator[TaggedResource]:
        for backend in iter_taggable_backends(self.account_id, self.region_name):
            yield from backend.iter_tagged_resources()
        if self.region_name == GLOBAL_REGION:
            yield from self._iam()
            yield from self._zones()

    def _iam(self) -> Iterator[TaggedResource]:
        from moto.iam.models import iam_backends

        backend = iam_backends[self.account_id][self.partition]
        for profile in backend.instance_profiles.values():
            yield TaggedResource(profile.arn, _plain(profile.tags), "iam:instance-profile")
        for policy in backend.managed_policies.values():
            yield TaggedResource(policy.arn, _plain(policy.tags), "iam:policy")

    def _zones(self) -> Iterator[TaggedResource]:
        from moto.route53.models import route53_backends

        backend = route53_backends[self.account_id][self.partition]
        for zone in backend.zones.values():
            tags = backend.list_tags_for_resource(zone.resource_id)
            yield TaggedResource(
                f"arn:{self.partition}:route53:::hostedzone/{zone.resource_id}", dict(tags), "route53:hostedzone"
            )


@contextmanager
def deletions_noticed(call: Call) -> Iterator[None]:
    """A block in which a call may delete resources; the tagging API of an aws-like box goes on listing them."""
    if not (is_aws_like() and call.action.startswith(_DELETING)):
        yield
        return
    from moto.resourcegroupstaggingapi.models import resourcegroupstaggingapi_backends

    regions = {call.region or GLOBAL_REGION, GLOBAL_REGION} if call.service in _GLOBAL else {call.region}
    held = [resourcegroupstaggingapi_backends[ACCOUNT][region] for region in regions]
    before = [backend.tagged() for backend in held]
    yield
    for backend, tagged in zip(held, before, strict=True):
        backend.remember_deleted(tagged)


def install() -> None:
    """Replace moto's tagging API with the box's."""
    from moto.resourcegroupstaggingapi.models import resourcegroupstaggingapi_backends

    resourcegroupstaggingapi_backends.backend = BoxTagging


def _plain(tags: Any) -> dict[str, str]:
    """Tags by key, from any of moto's representations in IAM."""
    if isinstance(tags, dict):
        return {key: tag["Value"] if isinstance(tag, dict) else str(tag) for key, tag in tags.items()}
    return {tag["Key"]: tag["Value"] for tag in tags or []}
