"""Texts that depend on created resources: user data with archive keys, policies with ARNs, deployed.json, exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from corral import render
from corral.components.dns_zone import Names
from corral.components.files import Archive
from corral.components.head import Head
from corral.components.identity import Identity
from corral.components.lustre import Lustre
from corral.components.pins_and_alarms import Pins, Watch
from corral.components.queues import Queues
from corral.model.cluster import ClusterPlan
from corral.model.deployed import BootFacts, Deployed, DeployedLustre, DeployedTemplate
from corral.model.enums import Role
from corral.plan.iam.iam_policies import ClusterArns, compute_policy, head_policy, job_policy, login_policy
from corral.plan.iam.role_arns import (
    alert_secret_arns,
    directory_secret_arn,
    host_key_secret_arn,
    job_arns,
    workspace_arn,
)
from corral.stacks.base_outputs import BaseOutputs


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCode:
    """The agent and its library, which every machine runs."""

    agent: Archive
    library: Archive

    def user_data(self, plan: ClusterPlan, role: Role, base: BaseOutputs) -> pulumi.Output[str]:
        """Return the user data of a machine in this role."""

        def text(found: Sequence[str]) -> str:
            bucket_name, public_key = found
            facts = BootFacts(
                cluster=plan.name,
                region=plan.region,
                bucket=bucket_name,
                prefix=plan.prefix,
                bundle_key=f"{plan.prefix}/{self.agent.path}",
                bundle_sha256=self.agent.sha256,
                library_key=f"{plan.prefix}/{self.library.path}",
                library_sha256=self.library.sha256,
                public_key=public_key,
            )
            return render.user_data(plan, role, facts)

        return pulumi.Output.all(base.bucket, base.public_key).apply(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterComponents:
    """The components of a cluster that others refer to."""

    plan: ClusterPlan
    account: str
    base: BaseOutputs
    pins: Pins
    watch: Watch
    identity: Identity
    group: pulumi.Output[str]
    names: Names
    lustre: Lustre
    queues: Queues

    def grant_roles(self) -> list[aws.iam.RolePolicy]:
        """Attach the policies of the roles. Head and login nodes must not boot before they have them."""
        arns, identity, base = self._arns(), self.identity, self.base
        job = pulumi.Output.all(base.bucket_arn, base.key_arn).apply(
            lambda found: job_policy(job_arns(self.plan, self.account, found[0], found[1]))
        )
        granted = [
            identity.grant("head", identity.head, arns.apply(head_policy)),
            identity.grant("compute", identity.compute, arns.apply(compute_policy)),
            identity.grant("job", identity.job, job),
        ]
        if roles := identity.login:
            granted.append(identity.grant("login", roles.login, arns.apply(login_policy)))
            granted.append(identity.grant("people", roles.people, job))
        return granted

    def deployed_json(self, head: Head) -> pulumi.Output[str]:
        """Return deployed.json once everything in it exists."""
        return self._record(head).apply(render.deployed_json)

    def export(self, head: Head) -> None:
        """Export the stack's outputs for users and other stacks."""
        pulumi.export("base", self.plan.base)
        pulumi.export("head", {"instance": head.instance.id, "address": str(self.plan.head.address)})
        pulumi.export("dns_zone", self.plan.dns_zone)
        pulumi.export("bucket", self.base.bucket)
        pulumi.export("prefix", self.plan.prefix)
        pulumi.export("image", self.pins.image_id)
        pulumi.export("ends_at", self.pins.ends_at)
        pulumi.export("queues", [queue.name for queue in self.plan.queues])
        pulumi.export("templates", {key: template.id for key, template in self.queues.templates.items()})
        pulumi.export("lustre", {name: system.dns_name for name, system in self.lustre.systems.items()})

    def _arns(self) -> pulumi.Output[ClusterArns]:
        plan = self.plan
        return pulumi.Output.all(
            bucket=self.base.bucket_arn,
            key=self.base.key_arn,
            compute_role=self.identity.compute.arn,
            job_role=self.identity.job.arn,
            people_role=self.identity.login.people.arn if self.identity.login else "",
            munge_secret=self.watch.munge.arn,
            hosted_zone=self.names.zone.arn,
            log_group=self.watch.log_group.arn,
            topic=self.watch.topic.arn,
        ).apply(lambda found: _cluster_arns(plan, self.account, found))

    def _record(self, head: Head) -> pulumi.Output[Deployed]:
        lustre, templates = self.lustre.systems, self.queues.templates
        return pulumi.Output.all(
            vpc_id=self.base.vpc_id,
            bucket=self.base.bucket,
            key_arn=self.base.key_arn,
            subnets=self.base.subnets,
            security_group=self.group,
            image_id=self.pins.image_id,
            head_interface=head.interface.id,
            state_volume=head.volume.id,
            templates={key: [t.id, t.latest_version] for key, t in templates.items()},
            placement_groups={key: group.name for key, group in self.queues.groups.items()},
            lustre={**{name: [s.id, s.dns_name, s.mount_name] for name, s in lustre.items()}, **self.base.lustre},
            home=self.base.home,
            hosted_zone=self.names.zone.zone_id,
            munge_secret=self.watch.munge.arn,
            log_group=self.watch.log_group.name,
            topic=self.watch.topic.arn,
            job_role=self.identity.job.arn,
            people_role=self.identity.login.people.arn if self.identity.login else None,
            ends_at=self.pins.ends_at,
        ).apply(lambda found: _deployed(self.plan, self.account, found))


def _cluster_arns(plan: ClusterPlan, account: str, found: Mapping[str, Any]) -> ClusterArns:
    own = {
        "account": account,
        "region": plan.region,
        "cluster": plan.name,
        "prefix": plan.prefix,
        "directory_secret": directory_secret_arn(plan, account),
        "host_key_secret": host_key_secret_arn(plan, account),
        "alert_secrets": alert_secret_arns(plan, account),
        "workspace": workspace_arn(plan, account),
    }
    return ClusterArns(**{**found, **own})


def _deployed(plan: ClusterPlan, account: str, found: Mapping[str, Any]) -> Deployed:
    templates = {key: DeployedTemplate(id=t[0], version=str(int(t[1]))) for key, t in found["templates"].items()}
    lustre = {n: DeployedLustre(id=s[0], dns_name=s[1], mount_name=s[2]) for n, s in found["lustre"].items()}
    own = {"account": account, "region": plan.region, "templates": templates, "lustre": lustre}
    return Deployed(**{**found, **own})
