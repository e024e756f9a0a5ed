"""The KMS keys of a base: everything at rest is encrypted with one, which is retained as long as the data, and the
manifests of its clusters are signed with the other."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BasePlan, key_alias
from corral.model.signing import SIGNING_KEY_WAITS_DAYS, signing_alias
from corral.model.tags import KEEP_KEY
from corral.plan.iam.iam_policies import key_policy, signing_key_policy

_WAITING_DAYS = 30  # KMS's maximum: deleting the key by mistake makes all data unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionKeyArgs:
    """`account`: who owns the key. `retained_id`: the key from an earlier deployment of this base."""

    plan: BasePlan
    account: str
    retained_id: str | None


class EncryptionKey(Component):
    """A key with yearly rotation and a readable alias."""

    def __init__(self, name: str, args: EncryptionKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("EncryptionKey", name, f"corral-{plan.name}", opts)
        self.key = aws.kms.Key(
            self.child("key"),
            description=f"corral base {plan.name}: volumes, buckets and file systems",
            enable_key_rotation=True,
            deletion_window_in_days=_WAITING_DAYS,
            policy=json.dumps(key_policy(args.account, plan.region)),
            # A deployer may replace the policy of keys with corral's tag, which does not count yet at a key's creation,
            # so KMS would refuse the key. The policy leaves it to the account's administrators in any case.
            bypass_policy_lockout_safety_check=True,
            tags=self.tags("key", keep=KEEP_KEY),
            opts=self.retained_options(args.retained_id, ignore_changes=["bypass_policy_lockout_safety_check"]),
        )
        # It outlives the base with the key: it proves later that this key and what it encrypts are the base's own.
        alias = key_alias(plan.name)
        aws.kms.Alias(
            self.child("alias"),
            name=alias,
            target_key_id=self.key.key_id,
            opts=self.retained_options(alias if args.retained_id else None),
        )
        self.register_outputs({"key": self.key.arn})


class SigningKey(Component):
    """The key that signs manifests, with an alias that its users name.

    Signatures of RSA with PKCS #1 v1.5 are always the same for the same text, so an `up` without changes has none.
    """

    def __init__(self, name: str, plan: BasePlan, account: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("SigningKey", name, f"corral-{plan.name}", opts)
        self.key = aws.kms.Key(
            self.child("key"),
            description=f"corral base {plan.name}: signs what machines run",
            customer_master_key_spec="RSA_2048",
            key_usage="SIGN_VERIFY",
            deletion_window_in_days=SIGNING_KEY_WAITS_DAYS,
            policy=json.dumps(signing_key_policy(account, plan.region)),
            bypass_policy_lockout_safety_check=True,  # as for the other key
            tags=self.tags("signing-key"),
            opts=pulumi.ResourceOptions.merge(
                self.child_options(), pulumi.ResourceOptions(ignore_changes=["bypass_policy_lockout_safety_check"])
            ),
        )
        aws.kms.Alias(
            self.child("alias"),
            name=signing_alias(plan.name),
            target_key_id=self.key.key_id,
            opts=self.child_options(),
        )
        self.register_outputs({"key": self.key.arn})
