"""Who may do what: IAM policy documents as plain data, from ARNs.

One function per policy. Statements are as narrow as EC2 allows: launches only from this cluster's templates, tags only
while launching, terminations only of instances that carry the cluster's tag. Source: Service Authorization Reference,
"Actions, resources, and condition keys" of each service.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.model.accounting import dump_key
from corral.model.lives import lives_prefix

Statement = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterArns:
    """What the policies of a cluster's roles speak of."""

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
    lustre: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobArns:
    """What the job role's policy speaks of. `writable`, `readable`: ARNs of buckets, or of prefixes in them."""

    bucket: str
    key: str
    cluster: str
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def document(statements: Sequence[Statement]) -> Mapping[str, Any]:
    """The policy document that consists of these statements."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def trust_service(service: str) -> Mapping[str, Any]:
    """The trust policy of a role that an AWS service takes on."""
    return document([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}])


def trust_roles(arns: Sequence[str]) -> Mapping[str, Any]:
    """The trust policy of a role that other roles take on."""
    return document([{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": list(arns)}}])


def boundary_policy(region: str) -> Mapping[str, Any]:
    """The most that any role on a base can ever do: no identity changes, nothing outside its region."""
    services = ["ec2", "s3", "kms", "fsx", "ssm", "ssmmessages", "ec2messages", "logs", "cloudwatch", "sns"]
    services += ["secretsmanager", "route53", "elasticfilesystem"]
    elsewhere = {"StringNotEquals": {"aws:RequestedRegion": [region, "us-east-1"]}}
    return document(
        [
            _allow("Services", [f"{service}:*" for service in services], ["*"]),
            _allow("Identity", ["iam:PassRole", "sts:AssumeRole", "sts:GetCallerIdentity"], ["*"]),
            # Route 53 answers in us-east-1 only; everything else stays at home.
            {"Sid": "Region", "Effect": "Deny", "NotAction": ["route53:*"], "Resource": ["*"], "Condition": elsewhere},
        ]
    )


def head_policy(arns: ClusterArns) -> Mapping[str, Any]:
    """What the head may do: launch and end this cluster's instances, name them, and keep the cluster's files."""
    return document(
        [
            *_launching(arns),
            *_ending(arns),
            *_head_files(arns),
            *_exporting(arns),
            *_reporting(arns),
            *_answering(arns),
        ]
    )


def compute_policy(arns: ClusterArns) -> Mapping[str, Any]:
    """What a compute machine may do: read its cluster's files and one secret, log, hand out the job role."""
    prefix = f"{arns.bucket}/{arns.prefix}/*"
    return document(
        [
            _allow("Files", ["s3:GetObject"], [prefix]),
            _allow("Bundle", ["s3:ListBucket"], [arns.bucket], {"StringLike": {"s3:prefix": [f"{arns.prefix}/*"]}}),
            _allow("Munge", ["secretsmanager:GetSecretValue"], [arns.munge_secret]),
            _allow("Key", ["kms:Decrypt"], [arns.key]),
            _allow("Jobs", ["sts:AssumeRole"], [arns.job_role]),
            *_reporting(arns),
            *_answering(arns),
        ]
    )


def job_policy(arns: JobArns) -> Mapping[str, Any]:
    """What a user's job may do: checkpoints of its cluster, the declared buckets, the secrets named in the spec."""
    own = {"StringLike": {"s3:prefix": [f"checkpoints/{arns.cluster}/*"]}}
    writable = [f"{arns.bucket}/checkpoints/{arns.cluster}/*", *(f"{place}/*" for place in arns.writable)]
    listed = sorted({place.split("/")[0] for place in (*arns.writable, *arns.readable)})
    read = [_allow("Read", ["s3:GetObject"], [f"{place}/*" for place in arns.readable])]
    look = [_allow("Buckets", ["s3:ListBucket", "s3:GetBucketLocation"], listed)]
    secrets = [_allow("Secrets", ["secretsmanager:GetSecretValue"], arns.secrets)]
    return document(
        [
            _allow("Objects", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], writable),
            *(read if arns.readable else []),
            _allow("Checkpoints", ["s3:ListBucket"], [arns.bucket], own),
            _allow("Key", ["kms:Decrypt", "kms:GenerateDataKey"], [arns.key]),
            *(look if listed else []),
            *(secrets if arns.secrets else []),
        ]
    )


def secret_arn(region: str, account: str, name: str) -> str:
    """The ARN of the secret of this name: AWS ends it with six characters that nobody chooses."""
    return f"arn:aws:secretsmanager:{region}:{account}:secret:{name}-??????"


def artefacts_policy(bucket: str) -> Mapping[str, Any]:
    """The bucket's own policy: nothing that travels unencrypted."""
    insecure = {"Bool": {"aws:SecureTransport": "false"}}
    everyone = {"Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": "s3:*"}
    return document([{**everyone, "Resource": [bucket, f"{bucket}/*"], "Condition": insecure}])


def key_policy(account: str, region: str) -> Mapping[str, Any]:
    """The key's own policy: the account's IAM policies decide; Logs and Spot, which no IAM policy reaches, are let in.

    Source: KMS Developer Guide, "Allows access to the AWS account"; CloudWatch Logs User Guide, "Encrypt log data";
    EC2 User Guide, "Service-linked role for Spot Instance requests" (customer managed keys).
    """
    logs = f"arn:aws:logs:{region}:{account}:log-group:/corral/*"
    spot = f"arn:aws:iam::{account}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    use = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
    # Named by a condition: KMS refuses a policy whose principal does not exist, and the first spot request makes it.
    is_spot = {"StringEquals": {"kms:CallerAccount": account}, "ArnEquals": {"aws:PrincipalArn": spot}}
    for_resource = {**is_spot, "Bool": {"kms:GrantIsForAWSResource": "true"}}
    return document(
        [
            {**_allow("Account", ["kms:*"], ["*"]), "Principal": {"AWS": f"arn:aws:iam::{account}:root"}},
            {
                **_allow("Logs", use, ["*"], {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": logs}}),
                "Principal": {"Service": f"logs.{region}.amazonaws.com"},
            },
            {**_allow("Spot", use, ["*"], is_spot), "Principal": {"AWS": "*"}},
            {**_allow("SpotGrants", ["kms:CreateGrant"], ["*"], for_resource), "Principal": {"AWS": "*"}},
        ]
    )


def _launching(arns: ClusterArns) -> tuple[Statement, ...]:
    ec2 = f"arn:aws:ec2:{arns.region}:{arns.account}"
    launched = [f"{ec2}:{kind}/*" for kind in ("instance", "network-interface", "volume", "spot-instances-request")]
    # A launch is allowed only if everything that it touches is, its template among that: its tag says whose it is, and
    # nobody but the deployer tags templates. The rest need only come from a template; so no template is listed here.
    templates, own = f"{ec2}:launch-template/*", {"StringEquals": {"aws:ResourceTag/corral:cluster": arns.cluster}}
    # So a reservation, too, is one of the spec's: dozens of ids would not fit into a role's policies.
    # New interfaces, volumes and instances are not named by a template; that there is one proves where they come from.
    new = {"ArnLike": {"ec2:LaunchTemplate": templates}}
    from_templates = {**new, "Bool": {"ec2:IsLaunchTemplateResource": "true"}}
    used = [f"{ec2}:{kind}/*" for kind in ("subnet", "security-group", "placement-group", "capacity-reservation")]
    used += [f"arn:aws:ec2:{arns.region}::image/*", f"{ec2}:image/*", f"arn:aws:ec2:{arns.region}::snapshot/*"]
    key_use = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*"]
    return (
        _allow("OwnTemplates", ["ec2:RunInstances"], [templates], own),
        _allow("LaunchFromTemplates", ["ec2:RunInstances"], used, from_templates),
        _allow("LaunchNew", ["ec2:RunInstances"], launched, new),
        _allow(
            "TagWhileLaunching", ["ec2:CreateTags"], launched, {"StringEquals": {"ec2:CreateAction": "RunInstances"}}
        ),
        _allow("PassCompute", ["iam:PassRole"], [arns.compute_role], _passed_to("ec2.amazonaws.com")),
        _allow("UseKey", [*key_use, "kms:GenerateDataKey"], [arns.key]),
        _allow("GrantKey", ["kms:CreateGrant"], [arns.key], {"Bool": {"kms:GrantIsForAWSResource": "true"}}),
    )


def _ending(arns: ClusterArns) -> tuple[Statement, ...]:
    instances = f"arn:aws:ec2:{arns.region}:{arns.account}:instance/*"
    own = {"StringEquals": {"ec2:ResourceTag/corral:cluster": arns.cluster}}
    reads = ["ec2:DescribeCapacityReservations", "ec2:DescribeInstances", "ec2:DescribeInstanceStatus"]
    reads.append("ec2:DescribeInstanceTopology")
    return (
        _allow("EndOwn", ["ec2:TerminateInstances"], [instances], own),
        _allow("See", [*reads, "ec2:DescribeLaunchTemplateVersions", "ec2:DescribeVolumes"], ["*"]),
    )


def _head_files(arns: ClusterArns) -> tuple[Statement, ...]:
    prefix = f"{arns.bucket}/{arns.prefix}/*"
    dump = dump_key(arns.cluster)
    listed = {"StringLike": {"s3:prefix": [f"{arns.prefix}/*", dump]}}
    pins = f"arn:aws:ssm:{arns.region}:{arns.account}:parameter/corral/{arns.cluster}/*"
    zone = ["route53:ChangeResourceRecordSets", "route53:ListResourceRecordSets"]
    return (
        _allow("Files", ["s3:GetObject", "s3:PutObject"], [prefix, f"{arns.bucket}/{dump}"]),
        _allow("List", ["s3:ListBucket"], [arns.bucket], listed),
        _allow("Lives", ["s3:PutObject"], [f"{arns.bucket}/{lives_prefix(arns.cluster)}*"]),
        _allow("Munge", ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"], [arns.munge_secret]),
        _allow("Names", zone, [arns.hosted_zone]),
        _allow("Pins", ["ssm:GetParameter"], [pins]),
        _allow("Jobs", ["sts:AssumeRole"], [arns.job_role]),
    )


def _exporting(arns: ClusterArns) -> tuple[Statement, ...]:
    """Exports from Lustre to S3: to make a task needs the file system and the task, to look at tasks takes no resource.

    Source: Service Authorization Reference, Amazon FSx.
    """
    if not arns.lustre:
        return ()
    tasks = f"arn:aws:fsx:{arns.region}:{arns.account}:task/*"
    return (
        _allow("ExportData", ["fsx:CreateDataRepositoryTask"], [*arns.lustre, tasks]),
        _allow("SeeExports", ["fsx:DescribeDataRepositoryTasks"], ["*"]),
    )


def _reporting(arns: ClusterArns) -> tuple[Statement, ...]:
    metrics = {"StringEquals": {"cloudwatch:namespace": "corral"}}
    return (
        _allow("Log", ["logs:CreateLogStream", "logs:PutLogEvents"], [f"{arns.log_group}:*"]),
        _allow("Measure", ["cloudwatch:PutMetricData"], ["*"], metrics),
        _allow("Tell", ["sns:Publish"], [arns.topic]),
    )


def _answering(arns: ClusterArns) -> tuple[Statement, ...]:
    """What SSM's agent needs to be a managed instance and to open a shell in Session Manager, without any open port.

    Not AmazonSSMManagedInstanceCore, which reads every parameter of the account. `ec2messages` is left out: agents from
    3.3.40.0 on use `ssmmessages` in its place. The channels take no resource.
    Source: Systems Manager User Guide, "Create an IAM role with minimal Session Manager permissions" and "Reference:
    ec2messages, ssmmessages, and other API operations"; Service Authorization Reference, AWS Systems Manager.
    """
    instances = f"arn:aws:ec2:{arns.region}:{arns.account}:instance/*"
    channels = [f"ssmmessages:{verb}{kind}Channel" for verb in ("Create", "Open") for kind in ("Control", "Data")]
    return (
        _allow("BeManaged", ["ssm:UpdateInstanceInformation"], [instances]),
        _allow("Shell", channels, ["*"]),
    )


def _passed_to(service: str) -> Mapping[str, Any]:
    return {"StringEquals": {"iam:PassedToService": service}}


def _allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], condition: Mapping[str, Any] | None = None
) -> Statement:
    statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return {**statement, "Condition": condition} if condition else statement
