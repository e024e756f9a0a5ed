"""The program of a base: network, key, bucket, home, guards."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from corral.components.bucket import Artefacts, ArtefactsArgs
from corral.components.budget import Guards, GuardsArgs
from corral.components.home import Home, HomeArgs
from corral.components.key import EncryptionKey, EncryptionKeyArgs, SigningKey
from corral.components.lustre import Lustre, LustreArgs, LustreGroup, LustreGroupArgs, keep_tag_value
from corral.components.vpc import AdoptedNetwork, Network, NetworkArgs
from corral.model.base import BasePlan
from corral.model.tags import KEEP_ARTEFACTS, KEEP_KEY
from corral.plan.base import plan_base
from corral.spec.yaml.stack_files import read_base
from corral.stacks import settings


def program() -> None:
    """Declare every resource of the base in this stack's config."""
    name = pulumi.get_stack()
    with settings.plain_errors():
        plan = plan_base(read_base(settings.project_dir(), name, settings.stack_config("corral-base")))
    aws, region = settings.provider(plan.tags), settings.region()
    account, retained = settings.account_id(aws), settings.retained_ids(name, aws)
    opts = pulumi.ResourceOptions(providers=[aws])

    network: Network | AdoptedNetwork
    if plan.public:
        network = Network("network", NetworkArgs(plan=plan, public=plan.public, retained_ids=retained), opts)
        pulumi.export("public_subnet", network.public_subnet.id)
    else:
        network = AdoptedNetwork(plan, aws)
    key = EncryptionKey(
        "key", EncryptionKeyArgs(plan=plan, account=account, retained_id=retained.get(KEEP_KEY)), opts
    ).key
    bucket = Artefacts(
        "artefacts",
        ArtefactsArgs(
            plan=plan,
            name=f"corral-{name}-{account}-{region}",
            account=account,
            key_arn=key.arn,
            retained_id=retained.get(KEEP_ARTEFACTS),
        ),
        opts,
    ).bucket
    signing_key = SigningKey("signing", plan, account, opts).key
    if plan.budget:
        Guards("guards", GuardsArgs(base=plan.name, budget=plan.budget), opts)
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
                retained_id=retained.get("home"),
            ),
            opts,
        )
        pulumi.export("home", home.file_system.id)
        pulumi.export("home_group", home.group.id)
    if plan.lustre:
        _export_lustre(plan, network, key.arn, retained, opts)
    pulumi.export("vpc", network.vpc_id)
    pulumi.export("subnets", subnets)
    pulumi.export("zone_names", network.zone_names)
    pulumi.export("bucket", bucket.bucket)
    pulumi.export("bucket_arn", bucket.arn)
    pulumi.export("key_arn", key.arn)
    pulumi.export("public_key", settings.public_key(signing_key.key_id, aws))


def _export_lustre(
    plan: BasePlan,
    network: Network | AdoptedNetwork,
    key_arn: pulumi.Input[str],
    retained: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> None:
    """Declare the base's file systems, and export what clusters need to mount them."""
    efa = any(system.efa for system in plan.lustre)
    group_args = LustreGroupArgs(owner=plan.name, vpc_id=network.vpc_id, efa=efa, retained_ids=retained)
    access = LustreGroup("lustre-access", group_args, opts)
    args = LustreArgs(
        owner=plan.name,
        systems=plan.lustre,
        subnets=network.subnets,
        group=access.group.id,
        group_rules=access.rules,
        key_arn=key_arn,
        retained_ids={
            system.name: retained[word] for system in plan.lustre if (word := keep_tag_value(system.name)) in retained
        },
    )
    systems = Lustre("lustre", args, opts).systems
    facts = {name: [s.id, s.dns_name, s.mount_name, s.arn] for name, s in systems.items()}
    pulumi.export("lustre", facts)
    pulumi.export("lustre_group", access.group.id)
