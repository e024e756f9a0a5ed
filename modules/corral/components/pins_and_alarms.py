"""Values pinned at the first deployment, and the cluster's secret, log group, topic and alarm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.cluster import ClusterPlan, declared_images
from corral.plan.iam.iam_policies import topic_policy
from corral.plan.iam.role_arns import topic_arn

_LOG_DAYS = 30  # long enough to look into last week's run, short enough not to cost
_FAILED_CHECKS = 2  # one-minute status checks of EC2 in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class PinsArgs:
    """`image_ids`, `ends_at`: the values of a first deployment now; existing pins do not change.

    The cluster's own image has the key `image`, that of a queue the key of its plan (`image_key`).
    """

    plan: ClusterPlan
    image_ids: Mapping[str, pulumi.Input[str]]
    ends_at: str | None


class Pins(Component):
    """Parameters that keep the first deployment's values: a newer image must not replace instances."""

    def __init__(self, name: str, args: PinsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Pins", name, f"corral-{args.plan.name}", opts)
        self._cluster = args.plan.name
        declared = declared_images(args.plan)
        self.image_ids = {
            key: self._pin(key, id, "An image of this cluster's machines", stays=key not in declared)
            for key, id in args.image_ids.items()
        }
        self.image_id = self.image_ids["image"]
        self.ends_at = None
        if args.ends_at is not None:
            self.ends_at = self._pin("ends-at", args.ends_at, "When this cluster ends by itself (UTC)", stays=True)
        self.register_outputs({"image_id": self.image_id})

    def _pin(self, key: str, value: pulumi.Input[str], description: str, *, stays: bool) -> pulumi.Output[str]:
        parameter = aws.ssm.Parameter(
            self.child(key),
            name=f"/corral/{self._cluster}/{key}",
            type="String",
            insecure_value=value,
            description=description,
            tags=self.tags(key),
            opts=pulumi.ResourceOptions(parent=self, ignore_changes=["insecureValue"] if stays else []),
        )
        pinned: pulumi.Output[str] = parameter.insecure_value.apply(str)
        return pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchArgs:
    """The plan of the cluster, and who gets its notifications. `account`: who owns the topic."""

    plan: ClusterPlan
    account: str
    key_arn: pulumi.Input[str]


class Watch(Component):
    """The cluster's secret (empty until the head generates the munge key), log group, and topic with subscribers."""

    def __init__(self, name: str, args: WatchArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("Watch", name, f"corral-{plan.name}", opts)
        self.munge = aws.secretsmanager.Secret(
            self.child("munge"),
            name=f"corral/{plan.name}/munge",
            description="The munge key; the head makes it and puts it here, so it is in no state file",
            kms_key_id=args.key_arn,
            recovery_window_in_days=0,  # the key of a deleted cluster is useless, and its name must be free again
            tags=self.tags("munge"),
            opts=self.child_options(),
        )
        self.log_group = aws.cloudwatch.LogGroup(
            self.child("log"),
            name=f"/corral/{plan.name}",
            retention_in_days=_LOG_DAYS,
            kms_key_id=args.key_arn,
            tags=self.tags("log"),
            opts=self.child_options(),
        )
        topic = topic_arn(plan, args.account)
        self.topic = aws.sns.Topic(
            self.child("topic"),
            name=topic.rpartition(":")[2],  # its policy names it
            policy=json.dumps(topic_policy(plan.region, args.account, topic)),
            tags=self.tags("topic"),
            opts=self.child_options(),
        )
        for email in plan.notify:
            aws.sns.TopicSubscription(
                self.child(f"mail-{email}"),
                topic=self.topic.arn,
                protocol="email",
                endpoint=email,
                opts=self.child_options(),
            )
        self.register_outputs({"topic": self.topic.arn})

    def alarm_on_head(self, plan: ClusterPlan, instance_id: pulumi.Input[str]) -> aws.cloudwatch.MetricAlarm:
        """The alarm that fires when EC2's own checks of the head fail."""
        return aws.cloudwatch.MetricAlarm(
            self.child("head-alarm"),
            alarm_description=f"corral cluster {plan.name}: head fails EC2's status checks; `corral up` replaces it",
            namespace="AWS/EC2",
            metric_name="StatusCheckFailed",
            dimensions={"InstanceId": instance_id},
            statistic="Maximum",
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=1,
            period=60,
            evaluation_periods=_FAILED_CHECKS,
            treat_missing_data="breaching",  # a terminated head reports nothing at all
            alarm_actions=[self.topic.arn],
            tags=self.tags("head-alarm"),
            opts=self.child_options(),
        )
