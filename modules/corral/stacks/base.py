"""The program of a base: network, key, bucket, home, guards."""

from __future__ import annotations

import pulumi

from corral.components.artefacts import Artefacts, ArtefactsArgs
from corral.components.guards import Guards, GuardsArgs
from corral.components.home import Home, HomeArgs
from corral.components.key import EncryptionKey, EncryptionKeyArgs
from corral.components.network import Network, NetworkArgs
from corral.plan.base import plan_base
from corral.spec.parse import parse_base
from corral.stacks import settings


def program() -> None:
    """Declares every resource of the base that this stack's config describes."""
    name, region = pulumi.get_stack(), settings.region()
    spec = parse_base(settings.spec_object("corral-base"), name=name, region=region, where=f"Pulumi.{name}.yaml")
    plan = plan_base(spec)
    aws = settings.provider(plan.tags)
    account, kept = settings.account_id(aws), settings.kept_ids(name, aws)
    opts = pulumi.ResourceOptions(providers=[aws])

    network = Network("network", NetworkArgs(plan=plan), opts)
    key = EncryptionKey("key", EncryptionKeyArgs(plan=plan, account=account, kept_id=kept.get("key")), opts).key
    bucket = Artefacts(
        "artefacts",
        ArtefactsArgs(
            plan=plan, name=f"corral-{name}-{account}-{region}", key_arn=key.arn, kept_id=kept.get("artefacts")
        ),
        opts,
    ).bucket
    guards = Guards("guards", GuardsArgs(plan=plan), opts)
    subnets = {zone_id: subnet.id for zone_id, subnet in network.subnets.items()}
    if plan.home:
        home = Home(
            "home",
            HomeArgs(
                plan=plan,
                home=plan.home,
                vpc_id=network.vpc.id,
                subnets=subnets,
                key_arn=key.arn,
                kept_id=kept.get("home"),
            ),
            opts,
        )
        pulumi.export("home", home.file_system.id)
        pulumi.export("home_group", home.group.id)
    pulumi.export("vpc", network.vpc.id)
    pulumi.export("subnets", subnets)
    pulumi.export("zone_names", {zone_id: subnet.availability_zone for zone_id, subnet in network.subnets.items()})
    pulumi.export("bucket", bucket.bucket)
    pulumi.export("bucket_arn", bucket.arn)
    pulumi.export("key_arn", key.arn)
    pulumi.export("boundary", guards.boundary.arn)
