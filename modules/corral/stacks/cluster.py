"""The program of a cluster: pins, identity, security, names, Lustre, queues, head, files."""

from __future__ import annotations

import pulumi

from corral import render
from corral.components.files import Archive, Files, FilesArgs
from corral.components.head import Head, HeadArgs
from corral.components.identity import Identity, IdentityArgs
from corral.components.lifetime import Pins, PinsArgs, Watch, WatchArgs
from corral.components.lustre import Lustre, LustreArgs
from corral.components.names import Names, NamesArgs
from corral.components.queues import Queues, QueuesArgs
from corral.components.security import Security, SecurityArgs
from corral.model.markets import Role
from corral.stacks import settings
from corral.stacks.deployment import Code, Parts
from corral.stacks.ground import Ground
from corral.stacks.wishes import ends_at, image_ids, read_plan


def program() -> None:
    """Declares every resource of the cluster that this stack's config describes."""
    plan = read_plan()
    code = Code(
        agent=Archive(name="agent", content=render.agent_bundle()),
        library=Archive(name="library", content=render.agent_library()),
    )
    ground, aws = Ground(plan), settings.provider(plan.tags)
    opts = pulumi.ResourceOptions(providers=[aws])

    pins = Pins("pins", PinsArgs(plan=plan, image_ids=image_ids(plan, aws), ends_at=ends_at(plan)), opts)
    watch = Watch("watch", WatchArgs(plan=plan, key_arn=ground.key_arn), opts)
    identity = Identity("identity", IdentityArgs(plan=plan, boundary=ground.boundary), opts)
    security = SecurityArgs(
        plan=plan, vpc_id=ground.vpc_id, home_group=ground.home_group, lustre_group=ground.lustre_group
    )
    group = Security("security", security, opts).group.id
    names = Names("names", NamesArgs(plan=plan, vpc_id=ground.vpc_id), opts)
    lustre_args = LustreArgs(
        owner=plan.name, systems=plan.own_lustre, subnets=ground.subnets, group=group, key_arn=ground.key_arn
    )
    lustre = Lustre("lustre", lustre_args, opts)
    queues = Queues(
        "queues",
        QueuesArgs(
            plan=plan,
            image_ids=pins.image_ids,
            profile_arn=identity.compute_profile.arn,
            group=group,
            key_arn=ground.key_arn,
            subnets=ground.subnets,
            user_data=code.user_data(plan, Role.COMPUTE, ground.bucket),
        ),
        opts,
    )
    parts = Parts(
        plan=plan, account=settings.account_id(aws), ground=ground, pins=pins, watch=watch, identity=identity,
        group=group, names=names, lustre=lustre, queues=queues,
    )  # fmt: skip
    head_args = HeadArgs(
        plan=plan,
        image_id=pins.image_id,
        profile_name=identity.head_profile.name,
        group=group,
        key_arn=ground.key_arn,
        subnet_id=ground.subnets[plan.head.zone_id],
        zone_name=ground.zone_names[plan.head.zone_id],
        user_data=code.user_data(plan, Role.HEAD, ground.bucket),
        needs=parts.grants(),
    )
    head = Head("head", head_args, opts)
    watch.alarm_on_head(plan, head.instance.id)
    texts: dict[str, pulumi.Input[str]] = {**render.cluster_files(plan), "deployed.json": parts.deployed_json(head)}
    files = FilesArgs(plan=plan, bucket=ground.bucket, texts=texts, agent=code.agent, library=code.library)
    Files("files", files, opts)
    parts.export(head)
