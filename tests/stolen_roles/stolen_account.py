"""An account with two clusters of one base and a stranger's resources, and those whose credentials are stolen."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError

import boxes
from cli_session import CliSession, copy_project
from corral.box.account import ACCOUNT, REGION
from corral.box.client import BoxStatus
from corral.engine.bootstrap.document_steps import DOCUMENT_STEPS
from corral.engine.bootstrap.step import BootstrapTarget
from corral.model.tags import LOGIN_TAG
from corral.plan.iam.access_policies import access_policies
from corral.plan.iam.deployer_policy import Policy
from corral.plan.iam.iam_policies import document, trust_roles
from deployer_role import DEPLOYER, create_deployer

OWN, NEAR, THEIRS = "dev", "near", "theirs"  # near: the neighbour on the same base; theirs: of nobody of corral
MACHINES, PEOPLE = ("compute", "head", "job", "login", "people"), ("reader", "user")
STOLEN = (*MACHINES, *PEOPLE, DEPLOYER)
# admin: the policy of corral for people who reach all machines; administrator: who may everything in the account.
ADMIN, ADMINISTRATOR = "admin", "administrator"
# Who owns what is not corral's: the stranger's resources, and what the teams of the clusters have made themselves.
TEAM = "team"
BOOTSTRAPPER = "bootstrapper"  # who runs `corral bootstrap` without being an administrator
_BOUNDARIES = f"arn:aws:iam::{ACCOUNT}:policy/corral/guards-boundary-*"
_DOCUMENTS = f"arn:aws:ssm:{REGION}:{ACCOUNT}:document/corral-*"
# What that page grants on corral's own policies and documents alone.
_BOOTSTRAPS_ONLY = {
    **dict.fromkeys(("iam:CreatePolicyVersion", "iam:DeletePolicyVersion"), _BOUNDARIES),
    **dict.fromkeys(("ssm:DeleteDocument", "ssm:UpdateDocument", "ssm:UpdateDocumentDefaultVersion"), _DOCUMENTS),
}
BOOTSTRAP = Path(__file__).parents[2] / "docs/bootstrap.md"
STATES = f"corral-state-{ACCOUNT}-{REGION}"
# What each cluster has besides that of its spec: one of each kind that names something of its own.
OWNED = """    login: {{instance_type: m7i.large, load_balancer: {{allow: [203.0.113.0/24]}}}}
    access:
      directory:
        servers: [ldaps://ldap.example.org]
        base: dc=example,dc=org
        filter: (objectClass=posixAccount)
        bind_dn: cn={cluster},dc=example,dc=org
        bind_secret: {cluster}-team/directory
    monitoring:
      prometheus: true
      alerts: {{slack: {cluster}-team/slack, pagerduty: {cluster}-team/pagerduty}}
      remote_write: {{workspace: {workspace}}}
    jobs:
      buckets: [{{s3: "s3://{cluster}-team-data/sets", write: true}}]
      registries: [{cluster}-team/train]
      secrets: {{HF_TOKEN: {cluster}-team/hugging-face}}
"""
# The secrets among them: the name here, and there after the team's.
SECRETS = {
    "directory_secret": "directory",
    "slack_secret": "slack",
    "pagerduty_secret": "pagerduty",
    "job_secret": "hugging-face",
}
_TRUST = trust_roles([f"arn:aws:iam::{ACCOUNT}:root"])


class Caller:
    """Somebody with these keys. Clients repeat what EC2 limits the rate of, and nothing else."""

    def __init__(self, url: str, keys: Mapping[str, str]) -> None:
        self._url, self._keys = url, keys
        self._made: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        """A client of this service."""
        if service not in self._made:
            self._made[service] = self._session().client(service, endpoint_url=self._url, config=boxes.RETRIES)
        return self._made[service]

    def post(self, service: str, path: str) -> None:
        """A signed call that boto3 does not know, by its path. Raises ClientError."""
        headers = {"Content-Type": "application/x-protobuf"}
        request = AWSRequest("POST", f"{self._url}{path}", headers, b"1")
        SigV4Auth(self._session().get_credentials(), service, REGION).add_auth(request)
        try:
            urlopen(Request(request.url, b"1", dict(request.headers))).close()
        except HTTPError as error:
            found, code = json.loads(error.read()), error.headers["x-amzn-errortype"]
            described = {"Code": code or found["__type"], "Message": found.get("message") or found["Message"]}
            raise ClientError({"Error": described}, path) from None

    def _session(self) -> boto3.session.Session:
        return boto3.session.Session(region_name=REGION, **self._keys)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a cluster's resources, or of those of somebody else. `aws`: who calls."""

    cluster: str
    known: Mapping[str, str]
    aws: Caller

    def __getattr__(self, name: str) -> str:
        """A name: `head`, `template`, ..."""
        return self.known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """`roles`: the name of the role of each identity. `names`: those of the resources, by their owner."""

    box: BoxStatus
    roles: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]
    _callers: dict[str, Caller] = field(default_factory=dict)

    def caller(self, identity: str) -> Caller:
        """Who has the credentials of this identity's role."""
        if identity not in self._callers:
            sts, arn = boxes.client(self.box, "sts"), self.role_arn(identity)
            held = sts.assume_role(RoleArn=arn, RoleSessionName="thief")["Credentials"]
            keys = {"aws_access_key_id": held["AccessKeyId"], "aws_secret_access_key": "x", "aws_session_token": "x"}
            self._callers[identity] = Caller(str(self.box.url), keys)
        return self._callers[identity]

    def role_arn(self, identity: str) -> str:
        """The ARN of an identity's role."""
        found: str = boxes.client(self.box, "iam").get_role(RoleName=self.roles[identity])["Role"]["Arn"]
        return found

    def names_for(self, identity: str, owner: str) -> Names:
        """The names of an owner's resources, with the identity as the caller."""
        return Names(owner, self.names[owner], self.caller(identity))


@contextmanager
def stolen_account(directory: Path) -> Iterator[Account]:
    """An account with the clusters `dev` and `near` on the base `dev`."""
    with boxes.running_box(directory / "box") as box:
        session = CliSession(project=copy_project(directory / "project", small=False), box=directory / "box")
        stacks = session.project / "stacks/cluster"
        spec = (stacks / f"Pulumi.{OWN}.yaml").read_text()
        for cluster in (OWN, NEAR):
            owned = OWNED.format(cluster=cluster, workspace=_of_the_team(box, cluster))
            (stacks / f"Pulumi.{cluster}.yaml").write_text(spec + owned)
        for cluster in (OWN, NEAR):
            done = session.run("up", cluster, "--yes")
            assert done.returncode == 0, done.stderr
        yield described(boxes.settle_tags(box))


def described(box: BoxStatus) -> Account:
    """The account of a box in which both clusters are up; adds people's roles and what belongs to somebody else."""
    clusters = {cluster: _cluster(box, cluster) for cluster in (OWN, NEAR)}
    create_deployer(boxes.client(box, "iam"))
    for step in DOCUMENT_STEPS:  # as `corral bootstrap` does
        step.create(partial(boxes.client, box), BootstrapTarget(account=ACCOUNT, region=REGION))
    for name, policy in zip((*PEOPLE, ADMIN), access_policies(account=ACCOUNT, region=REGION), strict=True):
        _create_role(box, name, policy)
    everything = document([{"Effect": "Allow", "Action": "*", "Resource": "*"}])
    _create_role(box, ADMINISTRATOR, Policy(name=ADMINISTRATOR, document=everything))
    _create_role(box, BOOTSTRAPPER, bootstrap_policy())
    for known in clusters.values():  # as the first login node does
        boxes.client(box, "secretsmanager").put_secret_value(SecretId=known["host_key_secret"], SecretString="1")
    theirs = {**clusters[OWN], **_strangers(box)}
    for known in (*clusters.values(), theirs):
        known |= _prepared(box, known) | {"other_vpc": theirs["other_vpc"]}
    for owner, known in {**clusters, THEIRS: theirs}.items():
        known["interface"] = _interface(box, known["subnet"], {} if owner == THEIRS else {"cluster": owner})
        known["own_template"] = clusters[OWN]["template"]
    _create_role(box, TEAM, team_policy(tuple(clusters.values()), theirs))
    people = {name: name for name in (*PEOPLE, ADMIN, DEPLOYER, BOOTSTRAPPER, TEAM, ADMINISTRATOR)}
    machines = {name: clusters[OWN][f"{name}_role"] for name in MACHINES}
    neighbours = {f"near-{name}": clusters[NEAR][f"{name}_role"] for name in MACHINES}
    return Account(box=box, roles={**people, **machines, **neighbours}, names={**clusters, THEIRS: theirs})


def bootstrap_policy() -> Policy:
    """What docs/bootstrap.md says that `corral bootstrap` needs, as an administrator would grant it."""
    text = BOOTSTRAP.read_text().partition("Without administrator rights")[2].partition("\n## ")[0]
    actions = sorted(set(re.findall(r"`(\w+:[A-Z]\w+)`", text)))
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": _BOOTSTRAPS_ONLY.get(action, "*")} for action in actions
    ]
    return Policy(name=BOOTSTRAPPER, document=document(statements))


def team_policy(clusters: Sequence[Mapping[str, str]], theirs: Mapping[str, str]) -> Policy:
    """Everything on what a team owns, and nothing on what is corral's."""
    here = f"{REGION}:{ACCOUNT}"
    made = [
        arn
        for known in clusters
        for arn in (
            *(known[name] for name in SECRETS),
            f"arn:aws:aps:{here}:workspace/{known['workspace']}",
            f"arn:aws:ecr:{here}:repository/{known['repository']}",
            f"arn:aws:s3:::{known['team_bucket']}/*",
        )
    ]
    ec2 = ("head", "template", "volume", "group", "table", "subnet", "vpc", "other_vpc", "address", "gateway")
    new = ("security-group-rule", "network-interface", "vpc-flow-log", "vpc-peering-connection")
    others = [
        *(f"arn:aws:ec2:{here}:*/{theirs[name]}" for name in ec2),
        *(f"arn:aws:ec2:{here}:{kind}/*" for kind in new),
        *(f"arn:aws:ec2:{REGION}::{kind}/*" for kind in ("image", "snapshot")),
        f"arn:aws:elasticfilesystem:{here}:file-system/{theirs['home']}",
        *(theirs[name] for name in ("balancer", "targets")),
        *(f"arn:aws:fsx:{here}:{kind}" for kind in (f"file-system/{theirs['lustre']}", "backup/*", "task/*")),
        *(f"arn:aws:kms:{here}:key/{theirs[name]}" for name in ("key", "signing_key")),
        *(f"arn:aws:kms:{here}:{theirs[name]}" for name in ("alias", "signing_alias")),
        *(f"arn:aws:s3:::{theirs['bucket']}{below}" for below in ("", "/*")),
        "arn:aws:s3:::corral-example-corpus/other",
        theirs["secret"],
        *(f"arn:aws:logs:{here}:log-group:{theirs['log_group']}{below}" for below in ("", ":*")),
        f"arn:aws:sns:{here}:{theirs['topic']}",
        f"arn:aws:cloudwatch:{here}:alarm:{theirs['alarm']}",
        f"arn:aws:ssm:{here}:parameter{theirs['parameter']}",
        f"arn:aws:aps:{here}:workspace/{theirs['workspace']}",
        f"arn:aws:ecr:{here}:repository/{theirs['repository']}",
        f"arn:aws:budgets::{ACCOUNT}:budget/{theirs['budget']}",
        f"arn:aws:route53:::hostedzone/{theirs['zone']}",
        *(f"arn:aws:iam::{ACCOUNT}:{name}" for name in ("role/ops", "instance-profile/ops", "user/grace")),
    ]
    owns = {"Effect": "Allow", "Action": "*", "Resource": [*made, *others]}
    sees = {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}
    return Policy(name=TEAM, document=document([owns, sees]))


def _create_role(box: BoxStatus, name: str, policy: Policy) -> None:
    iam = boxes.client(box, "iam")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))
    made = iam.create_policy(PolicyName=policy.name, PolicyDocument=json.dumps(policy.document))
    iam.attach_role_policy(RoleName=name, PolicyArn=made["Policy"]["Arn"])


def _of_the_team(box: BoxStatus, cluster: str) -> str:
    """Creates what the spec of a cluster names and its team has made itself. Returns the id of the workspace."""
    boxes.client(box, "s3").create_bucket(Bucket=f"{cluster}-team-data")
    boxes.client(box, "ecr").create_repository(repositoryName=f"{cluster}-team/train")
    for name in SECRETS.values():
        boxes.client(box, "secretsmanager").create_secret(Name=f"{cluster}-team/{name}", SecretString="1")
    workspace: str = boxes.client(box, "amp").create_workspace(alias=f"{cluster}-team")["workspaceId"]
    return workspace


def _cluster(box: BoxStatus, cluster: str) -> dict[str, str]:
    """The names of a cluster's resources and of its base's. A node is launched."""
    ec2, iam, kms = (boxes.client(box, service) for service in ("ec2", "iam", "kms"))
    own, base = (
        {"Name": f"tag:corral:{key}", "Values": [value]} for key, value in (("cluster", cluster), ("base", "dev"))
    )
    template = next(one for one in ec2.describe_launch_templates(Filters=[own])["LaunchTemplates"])
    machines = [i for r in ec2.describe_instances(Filters=[own])["Reservations"] for i in r["Instances"]]
    is_login = {one["InstanceId"]: LOGIN_TAG in {tag["Key"] for tag in one["Tags"]} for one in machines}
    (head,) = (one for one in machines if not is_login[one["InstanceId"]])
    (login,) = (instance for instance, found in is_login.items() if found)
    node = ec2.run_instances(LaunchTemplate={"LaunchTemplateId": template["LaunchTemplateId"]}, MinCount=1, MaxCount=1)[
        "Instances"
    ][0]
    roles = {}
    for one in iam.list_roles(PathPrefix="/corral/")["Roles"]:
        tags = {tag["Key"]: tag["Value"] for tag in iam.list_role_tags(RoleName=one["RoleName"])["Tags"]}
        if tags.get("corral:cluster") == cluster:
            roles[f"{one['RoleName'].split('-')[1]}_role"] = one["RoleName"]
    profile = iam.list_instance_profiles_for_role(RoleName=roles["head_role"])["InstanceProfiles"][0]
    zones = boxes.client(box, "route53").list_hosted_zones()["HostedZones"]
    zone = next(one for one in zones if one["Name"] == f"{cluster}.corral.internal.")
    aliases = {one["AliasName"]: one["TargetKeyId"] for one in kms.list_aliases()["Aliases"] if "TargetKeyId" in one}
    listed = boxes.client(box, "secretsmanager").list_secrets(MaxResults=100)["SecretList"]
    secrets = {one["Name"]: one["ARN"] for one in listed}
    (workspace,) = boxes.client(box, "amp").list_workspaces(alias=f"{cluster}-team")["workspaces"]
    volume = next(one for one in ec2.describe_volumes(Filters=[own])["Volumes"])
    systems = boxes.client(box, "fsx").describe_file_systems()["FileSystems"]
    lustre = next(one for one in systems if {"Key": "corral:cluster", "Value": cluster} in one["Tags"])
    alarms = boxes.client(box, "cloudwatch").describe_alarms()["MetricAlarms"]
    alarm = next(one for one in alarms if one["AlarmActions"][0].endswith(f"-{cluster}"))
    return {
        **roles,
        **_entry(box, cluster),
        "head": head["InstanceId"],
        "node": node["InstanceId"],
        "login": login,
        "template": template["LaunchTemplateId"],
        "profile": profile["InstanceProfileName"],
        "zone": zone["Id"].rpartition("/")[2],
        "domain": f"{cluster}.corral.internal",
        "secret": secrets[f"corral/{cluster}/munge"],
        "host_key_secret": secrets[f"corral/{cluster}/login-host-key"],
        **{name: secrets[f"{cluster}-team/{secret}"] for name, secret in SECRETS.items()},
        "workspace": workspace["workspaceId"],
        "team_bucket": f"{cluster}-team-data",
        "repository": f"{cluster}-team/train",
        "log_group": f"/corral/{cluster}",
        "topic": f"watch-topic-{cluster}",
        "alarm": alarm["AlarmName"],
        "parameter": f"/corral/{cluster}/ends-at",
        "bucket": f"corral-dev-{ACCOUNT}-{REGION}",
        "code": f"clusters/{cluster}",
        "key": aliases["alias/corral-dev"],
        "signing_key": aliases["alias/corral-signing/dev"],
        "alias": "alias/corral-dev",
        "signing_alias": "alias/corral-signing/dev",
        "home": boxes.client(box, "efs").describe_file_systems()["FileSystems"][0]["FileSystemId"],
        "lustre": lustre["FileSystemId"],
        "volume": volume["VolumeId"],
        "group": ec2.describe_security_groups(Filters=[own])["SecurityGroups"][0]["GroupId"],
        "table": ec2.describe_route_tables(Filters=[base])["RouteTables"][0]["RouteTableId"],
        "subnet": head["SubnetId"],
        "vpc": head["VpcId"],
        "image": head["ImageId"],
        "budget": "corral-dev",
        "address": ec2.describe_addresses(Filters=[base])["Addresses"][0]["AllocationId"],
    }


def _entry(box: BoxStatus, cluster: str) -> dict[str, str]:
    """The names of a cluster's load balancer and what belongs to it."""
    elbv2 = boxes.client(box, "elbv2")
    all_of_them = {
        "balancer": [one["LoadBalancerArn"] for one in elbv2.describe_load_balancers()["LoadBalancers"]],
        "targets": [one["TargetGroupArn"] for one in elbv2.describe_target_groups()["TargetGroups"]],
    }
    found = {}
    for name, arns in all_of_them.items():
        described = elbv2.describe_tags(ResourceArns=arns)["TagDescriptions"]
        of_cluster = {"Key": "corral:cluster", "Value": cluster}
        (found[name],) = (one["ResourceArn"] for one in described if of_cluster in one["Tags"])
    return found


def _interface(box: BoxStatus, subnet: str, tags: Mapping[str, str]) -> str:
    """An interface that no machine has: a head's, while the head is being replaced."""
    named = [
        {"Key": f"corral:{key}", "Value": value} for key, value in {**tags, **({"base": "dev"} if tags else {})}.items()
    ]
    more: Any = {"TagSpecifications": [{"ResourceType": "network-interface", "Tags": named}]} if tags else {}
    made = boxes.client(box, "ec2").create_network_interface(SubnetId=subnet, **more)
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def _prepared(box: BoxStatus, known: Mapping[str, str]) -> dict[str, str]:
    """Creates what calls on these resources use besides: streams of logs, a text that the key has encrypted, ..."""
    ec2 = boxes.client(box, "ec2")
    for stream in ("events", "other"):
        boxes.client(box, "logs").create_log_stream(logGroupName=known["log_group"], logStreamName=stream)
    sealed = boxes.client(box, "kms").encrypt(KeyId=known["key"], Plaintext=b"1")["CiphertextBlob"]
    attached = [{"Name": "attachment.vpc-id", "Values": [known["vpc"]]}]
    gateways = ec2.describe_internet_gateways(Filters=attached)["InternetGateways"]
    offers = ec2.describe_capacity_block_offerings(
        InstanceType="p4d.24xlarge", InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"]
    return {
        "sealed": b64encode(sealed).decode(),
        "gateway": gateways[0]["InternetGatewayId"],
        "offering": offers[0]["CapacityBlockOfferingId"],
    }


def _strangers(box: BoxStatus) -> dict[str, str]:
    """The names of what somebody else in the account has, without a tag or name of corral."""
    ec2, iam, kms = (boxes.client(box, service) for service in ("ec2", "iam", "kms"))
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20", AvailabilityZone=f"{REGION}a")["Subnet"]
    image = next(one["ImageId"] for one in ec2.describe_images()["Images"])
    made = ec2.run_instances(
        ImageId=image, InstanceType="m7i.large", SubnetId=subnet["SubnetId"], MinCount=1, MaxCount=1
    )
    volume = ec2.create_volume(AvailabilityZone=subnet["AvailabilityZone"], Size=8)["VolumeId"]
    template = ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData={"ImageId": image})
    iam.create_role(RoleName="ops", AssumeRolePolicyDocument=json.dumps(_TRUST))
    iam.create_user(UserName="grace")
    iam.create_instance_profile(InstanceProfileName="ops")
    iam.add_role_to_instance_profile(InstanceProfileName="ops", RoleName="ops")
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName="alias/payroll", TargetKeyId=key)
    signing = kms.create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName="alias/releases", TargetKeyId=signing)
    kms.create_alias(AliasName="alias/corral-state", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    s3 = boxes.client(box, "s3")
    for bucket in ("payroll-2026", STATES):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="clusters/x", Body=b"1")  # neither can be deleted
    secret = boxes.client(box, "secretsmanager").create_secret(Name="team/payroll", SecretString="1")["ARN"]
    boxes.client(box, "logs").create_log_group(logGroupName="/payroll")
    boxes.client(box, "sns").create_topic(Name="payroll")
    boxes.client(box, "cloudwatch").put_metric_alarm(
        AlarmName="payroll", ComparisonOperator="GreaterThanThreshold", EvaluationPeriods=1, MetricName="x",
        Namespace="payroll", Period=60, Statistic="Sum", Threshold=1.0,
    )  # fmt: skip
    limit = {"Amount": "1", "Unit": "USD"}
    budget = {"BudgetName": "payroll", "BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": limit}
    boxes.client(box, "budgets").create_budget(AccountId=ACCOUNT, Budget=budget)
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    boxes.client(box, "ssm").put_parameter(Name="/payroll/password", Value="1", Type="SecureString")
    boxes.client(box, "ecr").create_repository(repositoryName="payroll")
    elbv2 = boxes.client(box, "elbv2")
    front = elbv2.create_load_balancer(Name="payroll", Type="network", Subnets=[subnet["SubnetId"]])["LoadBalancers"]
    targets = elbv2.create_target_group(Name="payroll", Protocol="TCP", Port=22, VpcId=vpc)["TargetGroups"]
    zone = boxes.client(box, "route53").create_hosted_zone(Name="corp.example", CallerReference="1")["HostedZone"]["Id"]
    return {
        "head": made["Instances"][0]["InstanceId"],
        "node": made["Instances"][0]["InstanceId"],
        "login": made["Instances"][0]["InstanceId"],
        "template": template["LaunchTemplate"]["LaunchTemplateId"],
        "head_role": "ops",
        "compute_role": "ops",
        "job_role": "ops",
        "login_role": "ops",
        "people_role": "ops",
        "profile": "ops",
        "zone": zone.rpartition("/")[2],
        "domain": "corp.example",
        "balancer": front[0]["LoadBalancerArn"],
        # Of its own, as a group that a load balancer has cannot be deleted.
        "balancer_group": ec2.create_security_group(GroupName="front", Description="front", VpcId=vpc)["GroupId"],
        "targets": targets[0]["TargetGroupArn"],
        "secret": secret,
        "workspace": boxes.client(box, "amp").create_workspace(alias="payroll")["workspaceId"],
        "repository": "payroll",
        "log_group": "/payroll",
        "topic": "payroll",
        "alarm": "payroll",
        "parameter": "/payroll/password",
        "bucket": "payroll-2026",
        "code": "clusters",
        "key": key,
        "signing_key": signing,
        "alias": "alias/payroll",
        "signing_alias": "alias/releases",
        "home": boxes.client(box, "efs").create_file_system(CreationToken="theirs")["FileSystemId"],
        "lustre": boxes.client(box, "fsx").create_file_system(
            FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[subnet["SubnetId"]]
        )["FileSystem"]["FileSystemId"],
        "volume": volume,
        "group": ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=vpc)["GroupId"],
        "table": ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"],
        "subnet": subnet["SubnetId"],
        "vpc": vpc,
        "other_vpc": ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"],
        "image": image,
        "budget": "payroll",
        "address": ec2.allocate_address(Domain="vpc")["AllocationId"],
    }
