"""IAM policy documents as plain data, from ARNs.

One function per policy. Statements are as narrow as EC2 allows: launches only from this cluster's templates, tags only
while launching, terminations only of instances that carry the cluster's tag. Source: Service Authorization Reference,
"Actions, resources, and condition keys" of each service.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.model.accounting_paths import accounting_backup_key
from corral.model.deployed import LOG_STREAM, LOGIN_STREAMS
from corral.model.history import history_prefix
from corral.model.partitions import linked_service, partition_of, service_principal
from corral.model.tags import ADMINS_TAG, CLUSTER_TAG, LOGIN_TAG, request_tag, resource_tag

Statement = Mapping[str, Any]
IAM_PATH = "/corral/"  # of the roles, profiles and boundary, so that policies name nothing of anybody else
VIA_SERVICE_KEY = "kms:ViaService"
RECORD_NAMES_KEY = "route53:ChangeResourceRecordSetsNormalizedRecordNames"
VPCS_KEY = "route53:VPCs"
_KEY_USE = ("kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*")
_SEEN = ("ec2:DescribeCapacityReservations", "ec2:DescribeInstances", "ec2:DescribeInstanceTopology")
_OBJECTS = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
_LAYERS = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_LOGGING = ("logs:CreateLogStream", "logs:PutLogEvents")
_CHANNELS = tuple(f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArns:
    """The ARNs in the policies of a cluster's roles. `people_role`: empty without login nodes.

    `directory_secret`: that of the password for the directory of people; empty without one. `host_key_secret`: that of
    the host key of login nodes behind a load balancer; empty without one.
    `alert_secrets`: those with which the head notifies people. `workspace`: where it writes series; empty for nowhere.
    """

    account: str
    region: str
    cluster: str
    prefix: str
    bucket: str
    key: str
    compute_role: str
    job_role: str
    munge_secret: str
    hosted_zone: str
    log_group: str
    topic: str
    people_role: str = ""
    directory_secret: str = ""
    host_key_secret: str = ""
    alert_secrets: tuple[str, ...] = ()
    workspace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArns:
    """The ARNs in the job role's policy. `writable`, `readable`: ARNs of buckets, or of prefixes without last slash."""

    region: str
    bucket: str
    key: str
    cluster: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()


def document(statements: Sequence[Statement]) -> Mapping[str, Any]:
    """Return the policy document with these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def trust_service(service: str) -> Mapping[str, Any]:
    """Return the trust policy of a role that an AWS service assumes."""
    return document([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}])


def trust_roles(arns: Sequence[str]) -> Mapping[str, Any]:
    """Return the trust policy of a role that other roles assume."""
    return document([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": list(arns)}}])


def boundary_arn(region: str, account: str) -> str:
    """Return the ARN of the permissions boundary of all roles of the region, which `corral bootstrap` creates."""
    return f"arn:{partition_of(region).name}:iam::{account}:policy{IAM_PATH}{boundary_name(region)}"


def boundary_name(region: str) -> str:
    """Return the name of the region's boundary, at corral's path."""
    return f"guards-boundary-{region}"


def own_roles(region: str, account: str) -> str:
    """Return the pattern of the ARNs of all roles of clusters."""
    return f"arn:{partition_of(region).name}:iam::{account}:role{IAM_PATH}identity-*"


def boundary_policy(region: str, account: str) -> Mapping[str, Any]:
    """Return the permissions boundary of all roles of the region: what heads, nodes and jobs need, of any cluster.

    It names no cluster, and users declare buckets, secrets and repositories, so these are open. Deployers cannot change
    it, and create no role without it: a deployer's role can do no more than this.
    """
    arn, here = f"arn:{partition_of(region).name}", f"{region}:{account}"
    elsewhere = {"StringNotEquals": {"aws:RequestedRegion": [region]}}
    # Route 53 has one region for all. IAM and STS may answer from theirs; what these two may is limited to own roles.
    anywhere = ["iam:PassRole", "route53:*", "sts:AssumeRole"]
    objects = [*_OBJECTS, "s3:ListBucket", "s3:GetBucketLocation"]
    states = f"{arn}:s3:::corral-state-{account}-*"
    launch = ["ec2:RunInstances", *_SEEN]
    grants = {**_through(region, "ec2"), "Bool": {"kms:GrantIsForAWSResource": "true"}}
    pull = ["ecr:GetAuthorizationToken", *_LAYERS]
    zones, names = f"{arn}:route53:::hostedzone/*", {"ForAllValues:StringLike": {RECORD_NAMES_KEY: "*.corral.internal"}}
    return document(
        [
            _allow("Launch", launch, ["*"]),
            _allow("Tag", ["ec2:CreateTags"], ["*"], {"StringEquals": {"ec2:CreateAction": "RunInstances"}}),
            _allow("End", ["ec2:TerminateInstances"], ["*"], {"Null": {resource_tag(CLUSTER_TAG, "ec2"): "false"}}),
            _allow("Objects", objects, ["*"]),
            _allow("Keys", [*_KEY_USE, "kms:GenerateDataKey"], ["*"], _through(region, "ec2", "s3", "secretsmanager")),
            _allow("Grants", ["kms:CreateGrant"], ["*"], grants),
            _allow("Secrets", ["secretsmanager:GetSecretValue"], ["*"]),
            _allow("Munge", ["secretsmanager:PutSecretValue"], [f"{arn}:secretsmanager:{here}:secret:corral/*"]),
            _allow("Pull", pull, ["*"]),
            _allow("Zones", ["route53:ListResourceRecordSets"], [zones]),
            _allow("Names", ["route53:ChangeResourceRecordSets"], [zones], names),
            _allow("Log", _LOGGING, [f"{arn}:logs:{here}:log-group:/corral/*"]),
            _allow("Tell", ["sns:Publish"], [f"{arn}:sns:{here}:watch-*"]),
            _allow("Write", ["aps:RemoteWrite"], [f"{arn}:aps:{here}:workspace/*"]),
            _allow("Shell", ["ssm:UpdateInstanceInformation", *_CHANNELS], ["*"]),
            _allow(
                "Pass", ["iam:PassRole"], [own_roles(region, account)], _passed_to(service_principal("ec2", region))
            ),
            _allow("Assume", ["sts:AssumeRole"], [own_roles(region, account)]),
            {"Sid": "NoStates", "Effect": "Deny", "Action": ["s3:*"], "Resource": [states]},
            existing_interfaces(f"{arn}:ec2:{here}"),
            {"Sid": "Region", "Effect": "Deny", "NotAction": anywhere, "Resource": ["*"], "Condition": elsewhere},
        ]
    )


def head_policy(arns: ClusterArns) -> Mapping[str, Any]:
    """Return the head's policy: launch and terminate this cluster's instances, manage their DNS names and its files."""
    return document(
        [
            *_launching(arns),
            *_ending(arns),
            *_head_files(arns),
            *_reporting(arns),
            *_answering(arns),
        ]
    )


def compute_policy(arns: ClusterArns) -> Mapping[str, Any]:
    """Return a compute node's policy: read its cluster's files and one secret, assume the job role."""
    return document([*_joining(arns), _allow("Jobs", ["sts:AssumeRole"], [arns.job_role]), *_answering(arns)])


def login_policy(arns: ClusterArns) -> Mapping[str, Any]:
    """Return a login node's policy: what a compute node has, with the people's role, and log streams of its own."""
    return document(
        [
            *_joining(arns),
            _allow("People", ["sts:AssumeRole"], [arns.people_role]),
            _allow("Log", _LOGGING, [f"{arns.log_group}:log-stream:{LOGIN_STREAMS}*"]),
            *_host_key(arns),
            *_answering(arns),
        ]
    )


def _joining(arns: ClusterArns) -> tuple[Statement, ...]:
    """What a machine needs to join its cluster: its files, the munge key, and the key of both."""
    return (
        _allow("Files", ["s3:GetObject"], [f"{arns.bucket}/{arns.prefix}/*"]),
        _allow("Munge", ["secretsmanager:GetSecretValue"], [arns.munge_secret]),
        *_directory(arns),
        _allow("Key", ["kms:Decrypt"], [arns.key], _through(arns.region, "s3", "secretsmanager")),
    )


def _directory(arns: ClusterArns) -> tuple[Statement, ...]:
    """What SSSD of a machine needs to log in to the directory of people."""
    if not arns.directory_secret:
        return ()
    return (_allow("Directory", ["secretsmanager:GetSecretValue"], [arns.directory_secret]),)


def _host_key(arns: ClusterArns) -> tuple[Statement, ...]:
    """What login nodes need to show one host key: the first one writes it."""
    if not arns.host_key_secret:
        return ()
    secret = ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"]
    return (
        _allow("HostKey", secret, [arns.host_key_secret]),
        _allow("NewHostKey", ["kms:GenerateDataKey"], [arns.key], _through(arns.region, "secretsmanager")),
    )


def job_policy(arns: JobArns) -> Mapping[str, Any]:
    """Return a job's policy: checkpoints of its cluster, and the declared buckets, secrets and repositories.

    Source of the actions of a pull: ECR User Guide, "Repository policy examples" and "Private registry authentication".
    """
    own = {"StringLike": {"s3:prefix": [f"checkpoints/{arns.cluster}/*"]}}
    writable = [f"{arns.bucket}/checkpoints/{arns.cluster}/*", *(f"{arn}/*" for arn in arns.writable)]
    read = [_allow("Read", ["s3:GetObject"], [f"{arn}/*" for arn in arns.readable])]
    secrets = [_allow("Secrets", ["secretsmanager:GetSecretValue"], arns.secrets)]
    pull = [_allow("Login", ["ecr:GetAuthorizationToken"], ["*"]), _allow("Pull", _LAYERS, arns.repositories)]
    through = _through(arns.region, "s3", "secretsmanager")
    # Machines run what they read there as root, so no declared bucket may ever open it to jobs.
    code = {"Sid": "NoCode", "Effect": "Deny", "Action": "s3:*", "Resource": [f"{arns.bucket}/clusters/*"]}
    return document(
        [
            _allow("Objects", _OBJECTS, writable),
            *(read if arns.readable else []),
            _allow("Checkpoints", ["s3:ListBucket"], [arns.bucket], own),
            _allow("Key", ["kms:Decrypt", "kms:GenerateDataKey"], [arns.key], through),
            *_listing((*arns.writable, *arns.readable)),
            *(secrets if arns.secrets else []),
            *(pull if arns.repositories else []),
            code,
        ]
    )


def _listing(arns: Sequence[str]) -> Iterator[Statement]:
    """Allow to list these buckets and prefixes. Buckets with the same prefixes share a statement."""
    prefixes: dict[str, set[str]] = {}
    for arn in sorted(arns):
        bucket, _, prefix = arn.partition("/")
        prefixes.setdefault(bucket, set()).add(f"{prefix}/*" if prefix else "")
    buckets: dict[tuple[str, ...], list[str]] = {}
    for bucket, found in prefixes.items():
        buckets.setdefault(() if "" in found else tuple(sorted(found)), []).append(bucket)
    for number, (below, names) in enumerate(sorted(buckets.items())):
        condition = {"StringLike": {"s3:prefix": list(below)}} if below else None
        yield _allow(f"List{number}", ["s3:ListBucket"], names, condition)
    if prefixes:
        yield _allow("Where", ["s3:GetBucketLocation"], list(prefixes))


def secret_arn(region: str, account: str, name: str) -> str:
    """Return an ARN pattern for the secret of this name: AWS appends six random characters."""
    return f"arn:{partition_of(region).name}:secretsmanager:{region}:{account}:secret:{name}-??????"


def tls_only(bucket: str) -> Statement:
    """Return the statement of a bucket's policy that denies unencrypted requests."""
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    everyone = {"Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": "s3:*"}
    return {**everyone, "Resource": [bucket, f"{bucket}/*"], "Condition": insecure}


def artefacts_policy(bucket: str, region: str, account: str) -> Mapping[str, Any]:
    """Return the policy of a base's bucket: deny unencrypted requests, and machines writing what machines run as root.

    Whatever a role's own policies allow: heads write accounting and histories, jobs checkpoints.
    """
    machines = {"ArnLike": {"aws:PrincipalArn": f"arn:{partition_of(region).name}:iam::{account}:role/corral/*"}}
    code = {
        "Sid": "MachinesWriteNoCode",
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["s3:DeleteObject*", "s3:PutObject*"],
        "Resource": [f"{bucket}/clusters/*"],
        "Condition": machines,
    }
    return document([tls_only(bucket), code])


def topic_policy(region: str, account: str, topic: str) -> Mapping[str, Any]:
    """Return the policy of a cluster's topic: only alarms of the account may publish without a policy of their own.

    SNS's default policy admits everybody of whom `AWS:SourceOwner` is the account, a key that AWS does not document
    (awsdocs/iam-user-guide#111). Source: SNS Developer Guide, "Example cases for Amazon SNS access control".
    """
    aws = partition_of(region).name
    alarms = f"arn:{aws}:cloudwatch:{region}:{account}:alarm:watch-*"
    condition = {"StringEquals": {"aws:SourceAccount": account}, "ArnLike": {"aws:SourceArn": alarms}}
    principal = {"Service": service_principal("cloudwatch", region)}
    return document([{**_allow("Alarms", ["sns:Publish"], [topic], condition), "Principal": principal}])


def key_policy(account: str, region: str) -> Mapping[str, Any]:
    """Return the key's policy: delegate to the account's IAM policies, with extra statements for Logs and Spot.

    Source: KMS Developer Guide, "Allows access to the AWS account"; CloudWatch Logs User Guide, "Encrypt log data";
    EC2 User Guide, "Service-linked role for Spot Instance requests" (customer managed keys).
    """
    aws = partition_of(region).name
    logs = f"arn:{aws}:logs:{region}:{account}:log-group:/corral/*"
    spot = f"arn:{aws}:iam::{account}:role/aws-service-role/{linked_service('spot')}/AWSServiceRoleForEC2Spot"
    use = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
    # In a condition: KMS rejects a policy whose principal does not exist, and the first spot request creates this role.
    is_spot = {"StringEquals": {"kms:CallerAccount": account}, "ArnEquals": {"aws:PrincipalArn": spot}}
    for_resource = {**is_spot, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    return document(
        [
            {**_allow("Account", ["kms:*"], ["*"]), "Principal": {"AWS": f"arn:{aws}:iam::{account}:root"}},
            {
                **_allow("Logs", use, ["*"], {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": logs}}),
                "Principal": {"Service": service_principal("logs", region).replace("logs.", f"logs.{region}.", 1)},
            },
            {**_allow("Spot", use, ["*"], is_spot), "Principal": {"AWS": "*"}},
            {**_allow("SpotGrants", ["kms:CreateGrant"], ["*"], for_resource), "Principal": {"AWS": "*"}},
        ]
    )


def signing_key_policy(account: str, region: str) -> Mapping[str, Any]:
    """Return the policy of the key that signs manifests: IAM's policies of the account say who signs."""
    root = f"arn:{partition_of(region).name}:iam::{account}:root"
    return document([{**_allow("Account", ["kms:*"], ["*"]), "Principal": {"AWS": root}}])


def existing_interfaces(ec2: str) -> Statement:
    """Return the statement that denies launches with an interface that exists: a machine would get its address.

    One that the launch makes has no id yet, and is authorized as `network-interface/*`.
    """
    resource = f"{ec2}:network-interface/eni-*"
    return {"Sid": "NewInterfaces", "Effect": "Deny", "Action": ["ec2:RunInstances"], "Resource": [resource]}


def _launching(arns: ClusterArns) -> tuple[Statement, ...]:
    aws = partition_of(arns.region).name
    ec2 = f"arn:{aws}:ec2:{arns.region}:{arns.account}"
    launched = [f"{ec2}:{kind}/*" for kind in ("instance", "network-interface", "volume", "spot-instances-request")]
    # A launch requires permission for every resource that it uses, including the template, whose tag identifies the
    # cluster; only the deployer tags templates. Other resources need only come from a template, so none is listed here.
    templates, own = f"{ec2}:launch-template/*", {"StringEquals": {resource_tag(CLUSTER_TAG): arns.cluster}}
    # Likewise a reservation is always one of the spec's: dozens of ids would not fit into a role's policies.
    # A template does not name new interfaces, volumes and instances; its presence proves that the launch used one.
    new = {"ArnLike": {"ec2:LaunchTemplate": templates}}
    from_templates = {**new, "Bool": {"ec2:IsLaunchTemplateResource": "true"}}
    used = [f"{ec2}:{kind}/*" for kind in ("security-group", "placement-group")]
    # Subnets, reservations and capacity blocks can be shared by another account, which their ARNs name then.
    used += [f"arn:{aws}:ec2:{arns.region}:*:{kind}/*" for kind in ("subnet", "capacity-reservation")]
    used += [f"arn:{aws}:ec2:{arns.region}::image/*", f"{ec2}:image/*", f"arn:{aws}:ec2:{arns.region}::snapshot/*"]
    return (
        _allow("OwnTemplates", ["ec2:RunInstances"], [templates], own),
        _allow("LaunchFromTemplates", ["ec2:RunInstances"], used, from_templates),
        _allow("LaunchNew", ["ec2:RunInstances"], launched, new),
        existing_interfaces(ec2),
        _allow(
            "TagWhileLaunching",
            ["ec2:CreateTags"],
            launched,
            {
                "StringEquals": {"ec2:CreateAction": "RunInstances"},
                # Another cluster's autoscaler, or its people, would take the machine for one of theirs.
                "StringEqualsIfExists": {request_tag(CLUSTER_TAG): arns.cluster},
                # People would log in to the machine, or be kept from it: a head launches nodes alone.
                "Null": {request_tag(tag): "true" for tag in (LOGIN_TAG, ADMINS_TAG)},
            },
        ),
        _allow("PassCompute", ["iam:PassRole"], [arns.compute_role], _passed_to(service_principal("ec2", arns.region))),
        _allow(
            "UseKey",
            [*_KEY_USE, "kms:GenerateDataKey"],
            [arns.key],
            _through(arns.region, "ec2", "s3", "secretsmanager"),
        ),
        _allow(
            "GrantKey",
            ["kms:CreateGrant"],
            [arns.key],
            {**_through(arns.region, "ec2"), "Bool": {"kms:GrantIsForAWSResource": "true"}},
        ),
    )


def _ending(arns: ClusterArns) -> tuple[Statement, ...]:
    instances = f"arn:{partition_of(arns.region).name}:ec2:{arns.region}:{arns.account}:instance/*"
    own = {"StringEquals": {resource_tag(CLUSTER_TAG, "ec2"): arns.cluster}}
    return (
        _allow("EndOwn", ["ec2:TerminateInstances"], [instances], own),
        _allow("See", _SEEN, ["*"]),
    )


def _head_files(arns: ClusterArns) -> tuple[Statement, ...]:
    files, dump = f"{arns.bucket}/{arns.prefix}/*", accounting_backup_key(arns.cluster)
    zone = ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"]
    return (
        _allow("Files", ["s3:GetObject"], [files]),
        _allow("Accounting", ["s3:GetObject", "s3:PutObject"], [f"{arns.bucket}/{dump}"]),
        _allow("List", ["s3:ListBucket"], [arns.bucket], {"StringEquals": {"s3:prefix": dump}}),
        _allow("Lives", ["s3:PutObject"], [f"{arns.bucket}/{history_prefix(arns.cluster)}*"]),
        _allow("Munge", ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"], [arns.munge_secret]),
        *_directory(arns),
        _allow("Names", zone, [arns.hosted_zone]),
        _allow("Jobs", ["sts:AssumeRole"], [arns.job_role]),
    )


def _reporting(arns: ClusterArns) -> tuple[Statement, ...]:
    return (
        _allow("Log", _LOGGING, [f"{arns.log_group}:log-stream:{LOG_STREAM}"]),
        _allow("Tell", ["sns:Publish"], [arns.topic]),
        *([_allow("Alerts", ["secretsmanager:GetSecretValue"], arns.alert_secrets)] if arns.alert_secrets else []),
        *([_allow("Write", ["aps:RemoteWrite"], [arns.workspace])] if arns.workspace else []),
    )


def _answering(arns: ClusterArns) -> tuple[Statement, ...]:
    """Allow the SSM agent to register the instance and to open Session Manager shells, without any open port.

    Not AmazonSSMManagedInstanceCore, which can read every parameter of the account. `ec2messages` is not included:
    agents from 3.3.40.0 on use `ssmmessages` instead. The channel actions have no resource.
    Source: Systems Manager User Guide, "Create an IAM role with minimal Session Manager permissions" and "Reference:
    ec2messages, ssmmessages, and other API operations"; Service Authorization Reference, AWS Systems Manager.
    """
    instances = f"arn:{partition_of(arns.region).name}:ec2:{arns.region}:{arns.account}:instance/*"
    return (
        _allow("BeManaged", ["ssm:UpdateInstanceInformation"], [instances]),
        _allow("Shell", _CHANNELS, ["*"]),
    )


def _through(region: str, *services: str) -> Mapping[str, Any]:
    """Allow the use of a key by these services for the role, and not by the role's own calls of KMS.

    Source: KMS Developer Guide, "kms:ViaService".
    """
    domain = partition_of(region).dns_suffix
    return {"StringEquals": {VIA_SERVICE_KEY: [f"{service}.{region}.{domain}" for service in services]}}


def _passed_to(service: str) -> Mapping[str, Any]:
    return {"StringEquals": {"iam:PassedToService": service}}


def _allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return {**statement, "Condition": condition} if condition else statement
