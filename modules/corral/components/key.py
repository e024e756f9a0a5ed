"""The KMS key of a base. Everything at rest is encrypted with it, so it is kept as long as the data."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.base import BasePlan
from corral.plan.access import key_policy

_WAITING_DAYS = 30  # KMS's longest: a key deleted by mistake makes all data unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKeyArgs:
    """`account`: who owns the key. `kept_id`: the key of an earlier life of this base."""

    plan: BasePlan
    account: str
    kept_id: str | None


class EncryptionKey(Component):
    """A key that rotates every year, with an alias that people can read."""

    def __init__(self, name: str, args: EncryptionKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("EncryptionKey", name, f"corral-{plan.name}", opts)
        self.key = aws.kms.Key(
            self.child("key"),
            description=f"corral base {plan.name}: volumes, buckets and file systems",
            enable_key_rotation=True,
            deletion_window_in_days=_WAITING_DAYS,
            policy=json.dumps(key_policy(args.account, plan.region)),
            tags=self.tags("key", corral__keep="key"),
            opts=self.kept(args.kept_id),
        )
        aws.kms.Alias(
            self.child("alias"), name=f"alias/corral-{plan.name}", target_key_id=self.key.key_id, opts=self.own()
        )
        self.register_outputs({"key": self.key.arn})
