"""The program of a base: network, key, bucket, home, guards."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from corral.components.artefacts import Artefacts, ArtefactsArgs
from corral.components.guards import Guards, GuardsArgs
from corral.components.home import Home, HomeArgs
from corral.components.key import EncryptionKey, EncryptionKeyArgs
from corral.components.lustre import Lustre, LustreArgs, LustreGroup, LustreGroupArgs, kept_word
from corral.components.network import AdoptedNetwork, Network, NetworkArgs
from corral.model.base import BasePlan
from corral.plan.base import plan_base
from corral.spec.parse import parse_base
from corral.spec.surroundings import Surroundings
from corral.stacks import settings


def program() -> None:
    """Declares every resource of the base that this stack's config describes."""
    name, region = pulumi.get_stack(), settings.region()
    around = Surroundings(region=region)
    spec = parse_base(settings.spec_object("corral-base"), name=name, where=f"Pulumi.{name}.yaml", around=around)
    plan = plan_base(spec)
    aws = settings.provider(plan.tags)
    account, kept = settings.account_id(aws), settings.kept_ids(name, aws)
    opts = pulumi.ResourceOptions(providers=[aws])

    network: Network | AdoptedNetwork
    if plan.public:
        network = Network("network", NetworkArgs(plan=plan, public=plan.public, kept_ids=kept), opts)
    else:
        network = AdoptedNetwork(plan, aws)
    key = EncryptionKey("key", EncryptionKeyArgs(plan=plan, account=account, kept_id=kept.get("key")), opts).key
    bucket = Artefacts(
        "artefacts",
        ArtefactsArgs(
            plan=plan, name=f"corral-{name}-{account}-{region}", key_arn=key.arn, kept_id=kept.get("artefacts")
        ),
        opts,
    ).bucket
    guards = Guards("guards", GuardsArgs(plan=plan), opts)
    subnets = network.subnets
    if plan.home:
        home = Home(
            "home",
            HomeArgs(
                plan=plan,
                home=plan.home,
                vpc_id=network.vpc_id,
                subnets=subnets,
                key_arn=key.arn,
                kept_id=kept.get("home"),
            ),
            opts,
        )
        pulumi.export("home", home.file_system.id)
        pulumi.export("home_group", home.group.id)
    if plan.lustre:
        _export_lustre(plan, network, key.arn, kept, opts)
    pulumi.export("vpc", network.vpc_id)
    pulumi.export("subnets", subnets)
    pulumi.export("zone_names", network.zone_names)
    pulumi.export("bucket", bucket.bucket)
    pulumi.export("bucket_arn", bucket.arn)
    pulumi.export("key_arn", key.arn)
    pulumi.export("boundary", guards.boundary.arn)


def _export_lustre(
    plan: BasePlan,
    network: Network | AdoptedNetwork,
    key_arn: pulumi.Input[str],
    kept: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> None:
    """The file systems that are kept, and what clusters must know to mount them."""
    efa = any(system.efa for system in plan.lustre)
    group_args = LustreGroupArgs(owner=plan.name, vpc_id=network.vpc_id, efa=efa, kept_ids=kept)
    group = LustreGroup("lustre-access", group_args, opts).group
    args = LustreArgs(
        owner=plan.name,
        systems=plan.lustre,
        subnets=network.subnets,
        group=group.id,
        key_arn=key_arn,
        kept_ids={system.name: kept[word] for system in plan.lustre if (word := kept_word(system.name)) in kept},
    )
    systems = Lustre("lustre", args, opts).systems
    facts = {name: [s.id, s.dns_name, s.mount_name, s.arn] for name, s in systems.items()}
    pulumi.export("lustre", facts)
    pulumi.export("lustre_group", group.id)
