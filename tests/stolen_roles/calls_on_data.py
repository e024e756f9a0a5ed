"""Calls on what clusters keep: objects and buckets, keys, secrets, parameters and images."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from stolen_account import SECRETS, STATES, Names
from stolen_call import (
    APS,
    BOOTSTRAP,
    DEPLOYER,
    HEAD,
    IAM,
    KMS,
    NO_TAGS,
    NOBODY,
    OWNERS,
    POLICY,
    READERS,
    SSM,
    Run,
    StolenCall,
    both,
    near,
    own,
    theirs,
)

from corral.box.account import ACCOUNT, REGION


def calls_on_data() -> Iterator[StolenCall]:
    """All of these."""
    yield from _objects()
    yield from _keys()
    yield from _secrets()
    yield from _of_the_team()
    yield from _series()


def _objects() -> Iterator[StolenCall]:
    def get(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").get_object(Bucket=bucket or n.bucket, Key=key.format(**n.known))

    def put(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").put_object(Bucket=bucket or n.bucket, Key=key.format(**n.known), Body=b"1")

    def delete(key: str, bucket: str = "") -> Run:
        return lambda n: n.aws("s3").delete_object(Bucket=bucket or n.bucket, Key=key.format(**n.known))

    manifest, bucket = "{code}/manifest.json", "arn:aws:s3:::{bucket}"
    readers = ("near-compute", "near-head", "near-login", "deployer")
    jobs = ("near-job", "near-people", "deployer")
    rows: tuple[tuple[str, str, Callable[[str], Run], tuple[str, ...]], ...] = (
        ("s3:PutObject", manifest, put, DEPLOYER),
        ("s3:GetObject", manifest, get, readers),
        ("s3:DeleteObject", manifest, delete, DEPLOYER),
    )
    for action, key, make, may in rows:
        yield near(action, f"{bucket}/{key}", make(key), may)
        yield theirs(action, f"{bucket}/{key}", make(key))
    yield own("s3:PutObject", f"{bucket}/{manifest}", put(manifest), DEPLOYER)
    yield own("s3:DeleteObject", f"{bucket}/{manifest}", delete(manifest), DEPLOYER)
    saved = "checkpoints/near/step-1"
    yield near("s3:PutObject", f"{bucket}/{saved}", put(saved), jobs)
    yield near("s3:GetObject", f"{bucket}/{saved}", get(saved), jobs)
    yield near("s3:DeleteObject", f"{bucket}/{saved}", delete(saved), jobs)
    yield near(
        "s3:ListBucket",
        bucket,
        lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket, Prefix="checkpoints/near/"),
        jobs,
        keys={"s3:prefix": "checkpoints/near/"},
    )
    yield near("s3:ListBucket", bucket, lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket), DEPLOYER)
    yield theirs("s3:ListBucket", bucket, lambda n: n.aws("s3").list_objects_v2(Bucket=n.bucket))
    dump, life = "accounting/near.sql.gz", "lives/near/20261126T000000Z.json.gz"
    yield near("s3:PutObject", f"{bucket}/{dump}", put(dump), HEAD)
    yield near("s3:GetObject", f"{bucket}/{dump}", get(dump), HEAD)
    yield near("s3:PutObject", f"{bucket}/{life}", put(life), HEAD)
    yield near("s3:GetObject", f"{bucket}/{life}", get(life), READERS)
    yield theirs("s3:PutObject", "arn:aws:s3:::corral-example-corpus/other", put("other", "corral-example-corpus"))
    yield theirs("s3:GetObject", "arn:aws:s3:::corral-example-corpus/other", get("other", "corral-example-corpus"))
    yield near("s3:ListAllMyBuckets", "*", lambda n: n.aws("s3").list_buckets())
    state = f"arn:aws:s3:::{STATES}"
    kept = ".pulumi/stacks/corral-cluster/near.json"
    yield near("s3:PutObject", f"{state}/{kept}", put(kept, STATES), DEPLOYER)
    yield near("s3:GetObject", f"{state}/{kept}", get(kept, STATES), DEPLOYER)
    yield near(
        "s3:DeleteObjectVersion",
        f"{state}/{kept}",
        lambda n: n.aws("s3").delete_object(Bucket=STATES, Key=kept, VersionId="null"),
    )
    yield from _buckets(bucket, state)


def _buckets(bucket: str, state: str) -> Iterator[StolenCall]:
    settings: tuple[tuple[str, Callable[[str], Run]], ...] = (
        (
            "s3:PutBucketPolicy",
            lambda named: lambda n: n.aws("s3").put_bucket_policy(Bucket=named or n.bucket, Policy=POLICY),
        ),
        (
            "s3:PutBucketVersioning",
            lambda named: (
                lambda n: n.aws("s3").put_bucket_versioning(
                    Bucket=named or n.bucket, VersioningConfiguration={"Status": "Suspended"}
                )
            ),
        ),
        (
            "s3:PutBucketPublicAccessBlock",
            lambda named: (
                lambda n: n.aws("s3").put_public_access_block(
                    Bucket=named or n.bucket, PublicAccessBlockConfiguration={"BlockPublicPolicy": False}
                )
            ),
        ),
        ("s3:DeleteBucket", lambda named: lambda n: n.aws("s3").delete_bucket(Bucket=named or n.bucket)),
    )
    for action, make in settings:
        yield near(action, bucket, make(""), DEPLOYER)
        yield theirs(action, bucket, make(""))
        yield theirs(action, state, make(STATES), NOBODY if action == "s3:DeleteBucket" else BOOTSTRAP)
    changes: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        (
            "s3:PutEncryptionConfiguration",
            lambda n: n.aws("s3").delete_bucket_encryption(Bucket=n.bucket),
            DEPLOYER,
        ),
        (
            "s3:PutBucketNotification",
            lambda n: n.aws("s3").put_bucket_notification_configuration(Bucket=n.bucket, NotificationConfiguration={}),
            NOBODY,
        ),
        ("s3:PutReplicationConfiguration", lambda n: n.aws("s3").delete_bucket_replication(Bucket=n.bucket), NOBODY),
        ("s3:ListBucketVersions", lambda n: n.aws("s3").list_object_versions(Bucket=n.bucket), DEPLOYER),
    )
    for action, run, may in changes:
        yield from both(action, bucket, run, may, NO_TAGS)
    yield near("s3:GetBucketPolicy", bucket, lambda n: n.aws("s3").get_bucket_policy(Bucket=n.bucket), DEPLOYER)
    for build in (near, theirs):
        yield build("s3:PutBucketAcl", bucket, lambda n: n.aws("s3").put_bucket_acl(Bucket=n.bucket, ACL="public-read"))


def _keys() -> Iterator[StolenCall]:
    key = f"{KMS}:key/{{key}}"
    uses: tuple[tuple[str, Run], ...] = (
        ("Decrypt", lambda n: n.aws("kms").decrypt(KeyId=n.key, CiphertextBlob=b64decode(n.sealed))),
        ("Encrypt", lambda n: n.aws("kms").encrypt(KeyId=n.key, Plaintext=b"1")),
        ("GenerateDataKey", lambda n: n.aws("kms").generate_data_key(KeyId=n.key, KeySpec="AES_256")),
        (
            "CreateGrant",
            lambda n: n.aws("kms").create_grant(
                KeyId=n.key, GranteePrincipal=f"{IAM}:role/ops", Operations=["Decrypt"]
            ),
        ),
        ("DisableKeyRotation", lambda n: n.aws("kms").disable_key_rotation(KeyId=n.key)),
        ("DisableKey", lambda n: n.aws("kms").disable_key(KeyId=n.key)),
    )
    of_the_base = {"aws:ResourceTag/corral:base": "dev", "kms:ResourceAliases": "alias/corral-dev"}
    of_others = {"kms:ResourceAliases": "alias/payroll"}
    for name, run in uses:
        yield near(f"kms:{name}", key, run, keys=of_the_base)
        yield theirs(f"kms:{name}", key, run, keys=of_others)
    # `corral bootstrap` looks whether a key that was left has any.
    grants: Run = lambda n: n.aws("kms").list_grants(KeyId=n.key)  # noqa: E731
    yield near("kms:ListGrants", key, grants, BOOTSTRAP, keys=of_the_base)
    yield theirs("kms:ListGrants", key, grants, keys=of_others)
    # A deployer reads the policy of any key: KMS knows no tags of a key that is new.
    read: Run = lambda n: n.aws("kms").get_key_policy(KeyId=n.key, PolicyName="default")  # noqa: E731
    yield near("kms:GetKeyPolicy", key, read, DEPLOYER, keys=of_the_base)
    yield theirs("kms:GetKeyPolicy", key, read, (*DEPLOYER, *OWNERS), keys=of_others)
    changes: tuple[tuple[str, Run], ...] = (
        ("PutKeyPolicy", lambda n: n.aws("kms").put_key_policy(KeyId=n.key, PolicyName="default", Policy=POLICY)),
        (
            "TagResource",
            lambda n: n.aws("kms").tag_resource(KeyId=n.key, Tags=[{"TagKey": "corral:base", "TagValue": "dev"}]),
        ),
        ("ScheduleKeyDeletion", lambda n: n.aws("kms").schedule_key_deletion(KeyId=n.key)),
    )
    for name, run in changes:
        yield near(f"kms:{name}", key, run, DEPLOYER, keys=of_the_base)
        yield theirs(f"kms:{name}", key, run, keys=of_others)
    signing = f"{KMS}:key/{{signing_key}}"

    def sign(n: Names) -> Any:
        return n.aws("kms").sign(
            KeyId=n.signing_alias, Message=b"1", MessageType="RAW", SigningAlgorithm="RSASSA_PKCS1_V1_5_SHA_256"
        )

    for build, alias, may in ((near, "alias/corral-signing/dev", DEPLOYER), (theirs, "alias/releases", OWNERS)):
        yield build("kms:Sign", signing, sign, may, keys={"kms:RequestAlias": alias, "kms:ResourceAliases": alias})
    yield theirs(  # a second name would make the key one that deployers sign with
        "kms:CreateAlias",
        signing,
        lambda n: n.aws("kms").create_alias(AliasName="alias/corral-signing/mine", TargetKeyId=n.signing_key),
        BOOTSTRAP,
        keys={"kms:ResourceAliases": "alias/releases"},
    )
    yield theirs(
        "kms:UpdateAlias",
        signing,
        lambda n: n.aws("kms").update_alias(AliasName="alias/corral-signing/dev", TargetKeyId=n.signing_key),
        NOBODY,
        keys={"kms:ResourceAliases": "alias/releases"},
    )
    yield theirs(  # the key of this name decrypts for deployers
        "kms:UpdateAlias",
        f"{KMS}:alias/corral-state",
        lambda n: n.aws("kms").update_alias(AliasName="alias/corral-state", TargetKeyId=n.key),
        NOBODY,
    )
    yield theirs(
        "kms:DeleteAlias",
        f"{KMS}:alias/corral-state",
        lambda n: n.aws("kms").delete_alias(AliasName="alias/corral-state"),
        NOBODY,
    )
    yield theirs(
        "kms:DeleteAlias", f"{KMS}:alias/payroll", lambda n: n.aws("kms").delete_alias(AliasName="alias/payroll")
    )
    yield near("kms:ListKeys", "*", lambda n: n.aws("kms").list_keys())


def _secrets() -> Iterator[StolenCall]:
    readers = ("near-head", "near-compute", "near-login")
    rows: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        (
            "PutSecretValue",
            lambda n: n.aws("secretsmanager").put_secret_value(SecretId=n.secret, SecretString="2"),
            ("near-head",),
        ),
        ("GetSecretValue", lambda n: n.aws("secretsmanager").get_secret_value(SecretId=n.secret), readers),
        ("DescribeSecret", lambda n: n.aws("secretsmanager").describe_secret(SecretId=n.secret), DEPLOYER),
        (
            "GetResourcePolicy",
            lambda n: n.aws("secretsmanager").get_resource_policy(SecretId=n.secret),
            DEPLOYER,
        ),
        (
            "RotateSecret",
            lambda n: n.aws("secretsmanager").rotate_secret(SecretId=n.secret),
            NOBODY,
        ),
        (
            "PutResourcePolicy",
            lambda n: n.aws("secretsmanager").put_resource_policy(SecretId=n.secret, ResourcePolicy=POLICY),
            NOBODY,
        ),
        (
            "UpdateSecret",
            lambda n: n.aws("secretsmanager").update_secret(SecretId=n.secret, Description="mine"),
            DEPLOYER,
        ),
        (
            "DeleteSecret",
            lambda n: n.aws("secretsmanager").delete_secret(SecretId=n.secret, RecoveryWindowInDays=7),
            DEPLOYER,
        ),
    )
    for name, run, may in rows:
        yield from both(f"secretsmanager:{name}", "{secret}", run, may, NO_TAGS)
    yield near("secretsmanager:ListSecrets", "*", lambda n: n.aws("secretsmanager").list_secrets())
    parameter = f"{SSM}:parameter{{parameter}}"
    parameters: tuple[tuple[str, Run, tuple[str, ...]], ...] = (
        ("GetParameter", lambda n: n.aws("ssm").get_parameter(Name=n.parameter, WithDecryption=True), READERS),
        (
            "PutParameter",
            lambda n: n.aws("ssm").put_parameter(Name=n.parameter, Value="2099-01-01", Type="String", Overwrite=True),
            DEPLOYER,
        ),
        (
            "GetParameterHistory",
            lambda n: n.aws("ssm").get_parameter_history(Name=n.parameter, WithDecryption=True),
            NOBODY,
        ),
        ("DeleteParameter", lambda n: n.aws("ssm").delete_parameter(Name=n.parameter), DEPLOYER),
    )
    for name, run, may in parameters:
        yield from both(f"ssm:{name}", parameter, run, may, NO_TAGS)


def _pull(n: Names) -> Any:
    return n.aws("ecr").batch_get_image(repositoryName=n.repository, imageIds=[{"imageTag": "x"}])


def _of_the_team() -> Iterator[StolenCall]:
    """What the spec of a cluster names: secrets of alerts, of the directory and of jobs, a bucket, a repository.

    With them the host key of login nodes, which a load balancer needs.
    """

    def read(secret: str) -> Run:
        return lambda n: n.aws("secretsmanager").get_secret_value(SecretId=n.known[secret])

    def replace(secret: str) -> Run:
        return lambda n: n.aws("secretsmanager").put_secret_value(SecretId=n.known[secret], SecretString="2")

    readers = {
        "directory_secret": ("compute", "head", "login"),
        "slack_secret": ("head",),
        "pagerduty_secret": ("head",),
        "job_secret": ("job", "people"),
    }
    for secret in SECRETS:
        who = readers[secret]
        yield near("secretsmanager:GetSecretValue", f"{{{secret}}}", read(secret), tuple(f"near-{one}" for one in who))
        yield own("secretsmanager:GetSecretValue", f"{{{secret}}}", read(secret), who)
        for build in (near, own):
            yield build("secretsmanager:PutSecretValue", f"{{{secret}}}", replace(secret), OWNERS)
    for name, make_run in (("GetSecretValue", read), ("PutSecretValue", replace)):
        yield near(f"secretsmanager:{name}", "{host_key_secret}", make_run("host_key_secret"), ("near-login",))
        yield own(f"secretsmanager:{name}", "{host_key_secret}", make_run("host_key_secret"), ("login",))
    objects: tuple[tuple[str, Callable[[str], Run]], ...] = (
        ("PutObject", lambda key: lambda n: n.aws("s3").put_object(Bucket=n.team_bucket, Key=key, Body=b"1")),
        ("GetObject", lambda key: lambda n: n.aws("s3").get_object(Bucket=n.team_bucket, Key=key)),
        ("DeleteObject", lambda key: lambda n: n.aws("s3").delete_object(Bucket=n.team_bucket, Key=key)),
    )
    for name, make in objects:
        for build, who in ((near, ("near-job", "near-people")), (own, ("job", "people"))):
            yield build(f"s3:{name}", "arn:aws:s3:::{team_bucket}/sets/1", make("sets/1"), who)
        yield own(f"s3:{name}", "arn:aws:s3:::{team_bucket}/other", make("other"), OWNERS)
    repository = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository/{{repository}}"
    # A deployer reads any image of the account: `corral check` looks at those that jobs declare.
    yield near("ecr:BatchGetImage", repository, _pull, ("near-job", "near-people", "deployer"))
    yield theirs("ecr:BatchGetImage", repository, _pull, DEPLOYER)
    for build in (near, theirs):
        delete: Run = lambda n: n.aws("ecr").delete_repository(repositoryName=n.repository)  # noqa: E731
        yield build("ecr:DeleteRepository", repository, delete, OWNERS)


def _series() -> Iterator[StolenCall]:
    """Workspaces of Prometheus: a head writes to that of its spec, and nobody of corral does anything else."""
    workspace = f"{APS}/{{workspace}}"

    def post(api: str) -> Run:
        return lambda n: n.aws.post("aps", f"/workspaces/{n.workspace}/api/v1/{api}")

    yield near("aps:RemoteWrite", workspace, post("remote_write"), ("near-head",))
    yield own("aps:RemoteWrite", workspace, post("remote_write"), ("head",))
    yield theirs("aps:RemoteWrite", workspace, post("remote_write"))
    yield own("aps:QueryMetrics", workspace, post("query"), OWNERS)
    others: tuple[tuple[str, Run], ...] = (
        ("QueryMetrics", post("query")),
        ("DescribeWorkspace", lambda n: n.aws("amp").describe_workspace(workspaceId=n.workspace)),
        ("DeleteWorkspace", lambda n: n.aws("amp").delete_workspace(workspaceId=n.workspace)),
    )
    for name, run in others:
        for build in (near, theirs):
            yield build(f"aps:{name}", workspace, run, OWNERS)
