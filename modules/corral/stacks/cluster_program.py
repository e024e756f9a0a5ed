"""The program of a cluster: pins, identity, security, names, Lustre, queues, head, files."""

from __future__ import annotations

from functools import partial

import pulumi

from corral import render
from corral.components.dns_zone import Names, NamesArgs
from corral.components.files import Archive, Files, FilesArgs
from corral.components.head import Head, HeadArgs
from corral.components.identity import Identity, IdentityArgs
from corral.components.login import Login, LoginArgs
from corral.components.lustre import Lustre, LustreArgs
from corral.components.pins_and_alarms import Pins, PinsArgs, Watch, WatchArgs
from corral.components.queues import Queues, QueuesArgs
from corral.components.security import Security, SecurityArgs
from corral.model.enums import Role
from corral.stacks import settings
from corral.stacks.base_outputs import BaseOutputs
from corral.stacks.container_sources import source_archives
from corral.stacks.manifest_signing import sign_next
from corral.stacks.outputs import AgentCode, ClusterComponents
from corral.stacks.stack_inputs import ends_at, image_ids, read_plan, require_not_expired


def program() -> None:
    """Declare every resource of the cluster in this stack's config."""
    plans = read_plan()
    plan, aws = plans.cluster, settings.provider(plans.cluster.tags)
    require_not_expired(plan, aws)
    with settings.plain_errors():
        archives = source_archives(plan.containers)
    code = AgentCode(
        agent=Archive(name="agent", content=render.agent_bundle()),
        library=Archive(name="library", content=render.agent_library()),
    )
    base, opts = BaseOutputs(plan), pulumi.ResourceOptions(providers=[aws])

    pins = Pins("pins", PinsArgs(plan=plan, image_ids=image_ids(plan, aws), ends_at=ends_at(plan)), opts)
    account = settings.account_id(aws)
    watch = Watch("watch", WatchArgs(plan=plan, account=account, key_arn=base.key_arn), opts)
    identity = Identity("identity", IdentityArgs(plan=plan, account=account), opts)
    security_args = SecurityArgs(
        plan=plan, vpc_id=base.vpc_id, home_group=base.home_group, lustre_group=base.lustre_group
    )
    security = Security("security", security_args, opts)
    group = security.group.id
    names = Names("names", NamesArgs(plan=plan, vpc_id=base.vpc_id), opts)
    lustre_args = LustreArgs(
        owner=plan.name,
        systems=plan.own_lustre,
        subnets=base.subnets,
        group=group,
        group_rules=security.rules_to_itself,
        key_arn=base.key_arn,
    )
    lustre = Lustre("lustre", lustre_args, opts)
    queues = Queues(
        "queues",
        QueuesArgs(
            plan=plan,
            image_ids=pins.image_ids,
            profile_arn=identity.compute_profile.arn,
            group=group,
            key_arn=base.key_arn,
            subnets=base.subnets,
            user_data=code.user_data(plan, Role.COMPUTE, base),
        ),
        opts,
    )
    components = ClusterComponents(
        plan=plan, account=account, base=base, pins=pins, watch=watch, identity=identity,
        group=group, names=names, lustre=lustre, queues=queues,
    )  # fmt: skip
    grants = components.grant_roles()
    head_args = HeadArgs(
        plan=plan,
        image_id=pins.image_id,
        profile_name=identity.head_profile.name,
        group=group,
        key_arn=base.key_arn,
        subnet_id=base.subnets[plan.head.zone_id],
        zone_name=base.zone_names[plan.head.zone_id],
        user_data=code.user_data(plan, Role.HEAD, base),
        needs=grants,
    )
    head = Head("head", head_args, opts)
    watch.alarm_on_head(plan, head.instance.id)
    if plan.login and identity.login:
        login_args = LoginArgs(
            plan=plan,
            login=plan.login,
            vpc_id=base.vpc_id,
            machines=group,
            home_group=base.home_group,
            lustre_group=base.lustre_group,
            image_id=pins.image_id,
            profile_name=identity.login.profile.name,
            key_arn=base.key_arn,
            subnets=base.subnets,
            zone=names.zone.zone_id,
            user_data=code.user_data(plan, Role.LOGIN, base),
            needs=grants,
            balancer_subnets=base.balancer_subnets,
        )
        Login("login", login_args, opts)
    texts: dict[str, pulumi.Input[str]] = {
        **plans.files,
        **render.account_files(plan, account),
        "deployed.json": components.deployed_json(head),
    }
    files = FilesArgs(
        plan=plan,
        bucket=base.bucket,
        texts=texts,
        agent=code.agent,
        library=code.library,
        archives=archives,
        sign=partial(sign_next, settings.region(), plan.base, plan.prefix),
    )
    Files("files", files, opts)
    components.export(head)
