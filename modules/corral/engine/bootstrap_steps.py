"""The steps that prepare an account: for each, how one sees that it was taken, and how it is taken.

Nobody is given a right here: the deployer's policies are made, and attached by whoever may do that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corral.plan.access import artefacts_policy
from corral.plan.deployer import POLICIES, Policy, deployer_policies

Clients = Callable[[str], Any]  # a boto3 client of the account and region, by service
OLD_VERSIONS_DAYS = 90  # a state is small; a quarter is long enough to notice that an old one is needed
UPLOADS_DAYS = 7  # S3's advice for uploads that nobody ends
STATE_TAG = "corral:state"  # on what can be found by it: the key, and the deployer's policies
MOST_VERSIONS = 5  # of a managed policy. Source: IAM User Guide, "IAM quotas"
RULE = "corral-old-states"
# Each service's own role, which it needs before the first use by API. Sources: EC2 User Guide, "Service-linked role for
# Spot Instance requests"; FSx for Lustre User Guide and EFS User Guide, "Using service-linked roles". FSx's second one,
# for S3 (s3.data-source.lustre.fsx.amazonaws.com), is not here: FSx makes one for each file system.
SERVICES: Mapping[str, str] = {
    "spot.amazonaws.com": "spot instances",
    "fsx.amazonaws.com": "FSx for Lustre",
    "elasticfilesystem.amazonaws.com": "EFS",
}


class Blocked(Exception):
    """Something is there and cannot be used; the text says what would help."""


class Outdated(Exception):
    """Something is there and shall be changed; the text says how it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Where the states shall be: `name` begins the bucket's name and is the key's alias."""

    account: str
    region: str
    name: str = "corral-state"

    @property
    def bucket(self) -> str:
        """The bucket's name, which no other account can have taken by chance."""
        return f"{self.name}-{self.account}-{self.region}"

    @property
    def alias(self) -> str:
        """The key's alias, as KMS spells it."""
        return f"alias/{self.name}"

    @property
    def backend_url(self) -> str:
        """What PULUMI_BACKEND_URL is to say."""
        return f"s3://{self.bucket}?region={self.region}"

    @property
    def secrets_provider(self) -> str:
        """What `secretsprovider` in a stack's file is to say."""
        return f"awskms://{self.alias}?region={self.region}"

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The deployer's policies, by topic."""
        found = deployer_policies(account=self.account, region=self.region, alias=self.alias, bucket=self.bucket)
        return dict(zip(POLICIES, found, strict=True))

    def policy_arn(self, topic: str) -> str:
        """The ARN of the deployer's policy of this topic."""
        return f"arn:aws:iam::{self.account}:policy/{self.policies[topic].name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`look`: is it there? `make`: True if this made it, False if somebody else just did. `needs`: an earlier step.

    `look` raises Outdated for what `make` would change, Blocked for what it cannot mend.
    """

    key: str
    what: str
    service: str
    look: Callable[[Clients, Wanted], bool]
    make: Callable[[Clients, Wanted], bool]
    needs: str | None = None

    def title(self, wanted: Wanted) -> str:
        """What it makes, by name."""
        names = {topic: policy.name for topic, policy in wanted.policies.items()}
        return self.what.format(bucket=wanted.bucket, alias=wanted.alias, policies=names)


def steps() -> tuple[Step, ...]:
    """All steps, each after those that it needs."""
    roles = (_service_step(name, use) for name, use in SERVICES.items())
    return (*_BUCKET_STEPS, *_KEY_STEPS, *roles, *(_policy_step(topic) for topic in POLICIES))


def bucket_place(region: str) -> dict[str, dict[str, str]]:
    """What CreateBucket must be told of the region; the oldest is the one that must not be named.

    Source: S3 API, CreateBucket, LocationConstraint.
    """
    return {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}


def _has_bucket(client: Clients, wanted: Wanted) -> bool:
    client("s3").head_bucket(Bucket=wanted.bucket)
    return True


def _make_bucket(client: Clients, wanted: Wanted) -> bool:
    s3 = client("s3")
    try:
        s3.create_bucket(Bucket=wanted.bucket, **bucket_place(wanted.region))
    except s3.exceptions.BucketAlreadyOwnedByYou:
        return False
    return True


def _has_versions(client: Clients, wanted: Wanted) -> bool:
    return bool(client("s3").get_bucket_versioning(Bucket=wanted.bucket).get("Status") == "Enabled")


def _make_versions(client: Clients, wanted: Wanted) -> bool:
    client("s3").put_bucket_versioning(Bucket=wanted.bucket, VersioningConfiguration={"Status": "Enabled"})
    return True


def _has_encryption(client: Clients, wanted: Wanted) -> bool:
    found = client("s3").get_bucket_encryption(Bucket=wanted.bucket)["ServerSideEncryptionConfiguration"]
    return bool(found["Rules"])


def _make_encryption(client: Clients, wanted: Wanted) -> bool:
    rule = {
        "ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}
    }  # secrets are encrypted with the key below
    client("s3").put_bucket_encryption(Bucket=wanted.bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    return True


_PRIVATE = dict.fromkeys(("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"), True)


def _is_private(client: Clients, wanted: Wanted) -> bool:
    found = client("s3").get_public_access_block(Bucket=wanted.bucket)["PublicAccessBlockConfiguration"]
    return bool(found == _PRIVATE)


def _make_private(client: Clients, wanted: Wanted) -> bool:
    client("s3").put_public_access_block(Bucket=wanted.bucket, PublicAccessBlockConfiguration=_PRIVATE)
    return True


def _needs_tls(client: Clients, wanted: Wanted) -> bool:
    return bool(_tls_statements(wanted)[0] in _statements(client, wanted))


def _make_tls(client: Clients, wanted: Wanted) -> bool:
    s3 = client("s3")
    try:
        there = _statements(client, wanted)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
            raise
        there = []
    document = {"Version": "2012-10-17", "Statement": [*there, *_tls_statements(wanted)]}
    s3.put_bucket_policy(Bucket=wanted.bucket, Policy=json.dumps(document))
    return True


def _tls_statements(wanted: Wanted) -> list[Any]:
    return list(artefacts_policy(f"arn:aws:s3:::{wanted.bucket}")["Statement"])


def _statements(client: Clients, wanted: Wanted) -> list[Any]:
    found = json.loads(client("s3").get_bucket_policy(Bucket=wanted.bucket)["Policy"])["Statement"]
    return found if isinstance(found, list) else [found]


def _forgets(client: Clients, wanted: Wanted) -> bool:
    return any("NoncurrentVersionExpiration" in rule for rule in _rules(client, wanted))


def _make_forget(client: Clients, wanted: Wanted) -> bool:
    s3 = client("s3")
    try:
        there = _rules(client, wanted)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchLifecycleConfiguration":
            raise
        there = []
    rule = {
        "ID": RULE,
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": OLD_VERSIONS_DAYS},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": UPLOADS_DAYS},
    }
    s3.put_bucket_lifecycle_configuration(Bucket=wanted.bucket, LifecycleConfiguration={"Rules": [*there, rule]})
    return True


def _rules(client: Clients, wanted: Wanted) -> list[Any]:
    return list(client("s3").get_bucket_lifecycle_configuration(Bucket=wanted.bucket)["Rules"])


def _has_key(client: Clients, wanted: Wanted) -> bool:
    found = client("kms").describe_key(KeyId=wanted.alias)["KeyMetadata"]
    if found["KeyState"] == "PendingDeletion":
        raise Blocked(f"{found['KeyId']} is to be deleted; `aws kms cancel-key-deletion --key-id ...` saves it")
    if found["KeyState"] != "Enabled":
        raise Blocked(f"{found['KeyId']} is {found['KeyState']}; `aws kms enable-key --key-id ...` makes it usable")
    return True


def _make_key(client: Clients, wanted: Wanted) -> bool:
    """Makes the key and names it; a key that an interrupted run left without its name is taken up."""
    kms = client("kms")
    left = _nameless_key(client, wanted)
    key = (
        left
        or kms.create_key(
            Description=f"Secrets in the Pulumi states of {wanted.bucket}",
            Tags=[{"TagKey": STATE_TAG, "TagValue": wanted.name}],
        )["KeyMetadata"]["KeyId"]
    )
    try:
        kms.create_alias(AliasName=wanted.alias, TargetKeyId=key)
    except kms.exceptions.AlreadyExistsException:
        if kms.describe_key(KeyId=wanted.alias)["KeyMetadata"]["KeyId"] != key:
            kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)  # nothing was ever encrypted with it
        return False
    return True


def _nameless_key(client: Clients, wanted: Wanted) -> str | None:
    """A usable key with our tag and no alias."""
    kms, tagging = client("kms"), client("resourcegroupstaggingapi")
    mine = [{"Key": STATE_TAG, "Values": [wanted.name]}]
    tagged = tagging.get_resources(TagFilters=mine, ResourceTypeFilters=["kms:key"])["ResourceTagMappingList"]
    for arn in sorted(one["ResourceARN"] for one in tagged):
        is_usable = kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"] == "Enabled"
        if is_usable and not kms.list_aliases(KeyId=arn)["Aliases"]:
            return str(arn.rpartition("/")[2])
    return None


def _rotates(client: Clients, wanted: Wanted) -> bool:
    kms = client("kms")
    return bool(kms.get_key_rotation_status(KeyId=_key_id(kms, wanted))["KeyRotationEnabled"])


def _make_rotate(client: Clients, wanted: Wanted) -> bool:
    kms = client("kms")
    kms.enable_key_rotation(KeyId=_key_id(kms, wanted))
    return True


def _key_id(kms: Any, wanted: Wanted) -> str:
    """The key's id: rotation is not asked by alias. Source: KMS API, EnableKeyRotation, KeyId"""
    return str(kms.describe_key(KeyId=wanted.alias)["KeyMetadata"]["KeyId"])


def _service_step(service: str, use: str) -> Step:
    def look(client: Clients, wanted: Wanted) -> bool:
        return bool(client("iam").list_roles(PathPrefix=f"/aws-service-role/{service}/")["Roles"])

    def make(client: Clients, wanted: Wanted) -> bool:
        iam = client("iam")
        try:
            iam.create_service_linked_role(AWSServiceName=service)
        except iam.exceptions.InvalidInputException as error:
            if "has been taken" not in str(error):
                raise
            return False
        return True

    return Step(key=service, what=f"role of {use} ({service})", service="iam", look=look, make=make)


def _policy_step(topic: str) -> Step:
    def look(client: Clients, wanted: Wanted) -> bool:
        return _has_policy(client, wanted.policy_arn(topic), wanted.policies[topic])

    def make(client: Clients, wanted: Wanted) -> bool:
        return _make_policy(client, wanted, topic)

    what = f"policy {{policies[{topic}]}}"
    return Step(key=f"policy-{topic}", what=what, service="iam", look=look, make=make)


def _has_policy(client: Clients, arn: str, policy: Policy) -> bool:
    """True if the policy says what it should. Raises Outdated where its default version says something else."""
    iam = client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    if found != policy.document:
        raise Outdated(f"its version {version} says something else, and stays as an older one")
    return True


def _make_policy(client: Clients, wanted: Wanted, topic: str) -> bool:
    iam, policy, arn = client("iam"), wanted.policies[topic], wanted.policy_arn(topic)
    text = json.dumps(policy.document, separators=(",", ":"))
    tags = [{"Key": STATE_TAG, "Value": wanted.name}]
    try:
        iam.create_policy(PolicyName=policy.name, PolicyDocument=text, Tags=tags)
        return True
    except iam.exceptions.EntityAlreadyExistsException:
        return _renew_policy(iam, arn, policy, text)


def _renew_policy(iam: Any, arn: str, policy: Policy, text: str) -> bool:
    """Makes the text the default version of a policy that is there; the oldest other one goes where AWS takes no more.

    False where somebody else just did.
    """
    try:
        return not _has_policy(lambda _: iam, arn, policy)
    except Outdated:
        versions = iam.list_policy_versions(PolicyArn=arn)["Versions"]
    older = sorted((one for one in versions if not one["IsDefaultVersion"]), key=lambda one: int(one["VersionId"][1:]))
    if len(versions) >= MOST_VERSIONS:
        iam.delete_policy_version(PolicyArn=arn, VersionId=older[0]["VersionId"])
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
    return True


def _of_bucket(key: str, what: str, look: Callable[..., bool], make: Callable[..., bool]) -> Step:
    return Step(key=key, what=what, service="s3", look=look, make=make, needs="bucket")


_BUCKET_STEPS = (
    Step(key="bucket", what="bucket {bucket}", service="s3", look=_has_bucket, make=_make_bucket),
    _of_bucket("private", "closed to the public", _is_private, _make_private),
    _of_bucket("versions", "keeps old versions", _has_versions, _make_versions),
    _of_bucket("encryption", "encrypts what it stores", _has_encryption, _make_encryption),
    _of_bucket("tls", "refuses plain HTTP", _needs_tls, _make_tls),
    _of_bucket("lifecycle", f"forgets versions after {OLD_VERSIONS_DAYS} days", _forgets, _make_forget),
)
_KEY_STEPS = (
    Step(key="key", what="key {alias}", service="kms", look=_has_key, make=_make_key),
    Step(key="rotation", what="rotates every year", service="kms", look=_rotates, make=_make_rotate, needs="key"),
)
