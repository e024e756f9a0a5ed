"""Queues as EC2 sees them: a cluster placement group per queue and zone, a launch template per queue, pool and zone."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.components.instance_defaults import METADATA
from corral.model.cluster import ClusterPlan, NicPlan, OfferPlan, QueuePlan, image_key
from corral.model.enums import Market
from corral.model.tags import launched_kinds, launched_tags


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesArgs:
    """`user_data`: the text itself, not encoded. `subnets`: one per zone. `image_ids`: by their keys in the plan."""

    plan: ClusterPlan
    image_ids: Mapping[str, pulumi.Input[str]]
    profile_arn: pulumi.Input[str]
    group: pulumi.Input[str]
    key_arn: pulumi.Input[str]
    subnets: Mapping[str, pulumi.Input[str]]
    user_data: pulumi.Input[str]


class Queues(Component):
    """Placement groups by key and launch templates by offer."""

    def __init__(self, name: str, args: QueuesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Queues", name, f"corral-{args.plan.name}", opts)
        self._args = args
        self.groups = {
            group.key: aws.ec2.PlacementGroup(
                self.child(f"group-{group.key}"),
                strategy="cluster",
                tags=self.tags(group.key),
                opts=self.child_options(),
            )
            for group in args.plan.placement_groups
        }
        self.templates = {
            offer.key: self._template(queue, offer) for queue in args.plan.queues for offer in queue.offers
        }
        self.register_outputs({"templates": [template.id for template in self.templates.values()]})

    def _template(self, queue: QueuePlan, offer: OfferPlan) -> aws.ec2.LaunchTemplate:
        args = self._args
        return aws.ec2.LaunchTemplate(
            self.child(offer.key),
            description=f"corral cluster {args.plan.name}: {offer.market} {queue.instance_type} in {offer.zone_id}",
            image_id=args.image_ids[image_key(queue)],
            instance_type=queue.instance_type,
            instance_initiated_shutdown_behavior="terminate",  # a node terminates itself by powering off
            update_default_version=True,
            user_data=pulumi.Output.from_input(args.user_data).apply(_encode),
            iam_instance_profile=aws.ec2.LaunchTemplateIamInstanceProfileArgs(arn=args.profile_arn),
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(**METADATA),
            block_device_mappings=[self._root_volume(queue)],
            network_interfaces=[self._interface(nic, offer) for nic in queue.nics],
            placement=self._placement(offer),
            instance_market_options=_market(offer),
            capacity_reservation_specification=_reservation(offer),
            tag_specifications=self._launched(queue, offer),
            tags=self.tags(offer.key),
            opts=self.child_options(),
        )

    def _root_volume(self, queue: QueuePlan) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
        return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
            device_name=self._args.plan.image_of(queue).root_device,
            ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                volume_type="gp3",
                volume_size=queue.root_gib,
                encrypted="true",
                kms_key_id=self._args.key_arn,
                delete_on_termination="true",
            ),
        )

    def _interface(self, nic: NicPlan, offer: OfferPlan) -> aws.ec2.LaunchTemplateNetworkInterfaceArgs:
        return aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=nic.card,
            device_index=nic.device,
            interface_type=nic.interface_type.value,
            subnet_id=self._args.subnets[offer.zone_id],
            security_groups=[self._args.group],
            delete_on_termination="true",
        )

    def _placement(self, offer: OfferPlan) -> aws.ec2.LaunchTemplatePlacementArgs | None:
        if offer.reserved_group is not None:
            return aws.ec2.LaunchTemplatePlacementArgs(group_name=offer.reserved_group)
        if offer.placement_group is None:
            return None
        return aws.ec2.LaunchTemplatePlacementArgs(group_name=self.groups[offer.placement_group].name)

    def _launched(self, queue: QueuePlan, offer: OfferPlan) -> list[aws.ec2.LaunchTemplateTagSpecificationArgs]:
        plan = self._args.plan
        tags = launched_tags(plan.tags, plan.name, queue.name, offer.key)
        kinds = launched_kinds(offer.market)
        return [aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags) for kind in kinds]


def _market(offer: OfferPlan) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    """One-time requests: a persistent one would restart the instance without Slurm."""
    if offer.market is Market.CAPACITY_BLOCK:
        return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type="capacity-block")
    if offer.market is not Market.SPOT:
        return None
    price = offer.max_price_usd_per_hour
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(
        market_type="spot",
        spot_options=aws.ec2.LaunchTemplateInstanceMarketOptionsSpotOptionsArgs(
            spot_instance_type="one-time",
            instance_interruption_behavior="terminate",
            max_price=None if price is None else str(price),
        ),
    )


def _reservation(offer: OfferPlan) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs | None:
    if offer.reservation is None:
        return None
    target = aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
        capacity_reservation_id=offer.reservation
    )
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(capacity_reservation_target=target)


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
