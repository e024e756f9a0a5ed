"""An account with two clusters of one base and a stranger's resources, and those whose credentials are stolen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

import boxes
from cli_session import CliSession, copy_project
from corral.box.account import ACCOUNT, REGION
from corral.box.client import BoxStatus
from corral.model.tags import LOGIN_TAG
from corral.plan.iam.access_policies import access_policies
from corral.plan.iam.deployer_policy import Policy
from corral.plan.iam.iam_policies import trust_roles
from deployer_role import DEPLOYER, create_deployer

OWN, NEAR, THEIRS = "dev", "near", "theirs"  # near: the neighbour on the same base; theirs: of nobody of corral
MACHINES, PEOPLE = ("compute", "head", "job", "login", "people"), ("reader", "user")
STOLEN = (*MACHINES, *PEOPLE, DEPLOYER)
ADMIN, OWNER = "admin", "owner"
STATES = f"corral-state-{ACCOUNT}-{REGION}"
LOGIN = "    login: {instance_type: m7i.large}\n    access: {users: {ada: {}}}\n"
_ONCE = Config(retries={"total_max_attempts": 1})
_TRUST = trust_roles([f"arn:aws:iam::{ACCOUNT}:root"])


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a cluster's resources, or of those of somebody else. `aws`: the clients of who calls."""

    cluster: str
    known: Mapping[str, str]
    aws: Callable[[str], Any]

    def __getattr__(self, name: str) -> str:
        """A name: `head`, `template`, ..."""
        return self.known[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """`roles`: the name of the role of each identity. `names`: those of the resources, by their owner."""

    box: BoxStatus
    roles: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]
    _clients: dict[str, Callable[[str], Any]] = field(default_factory=dict)

    def clients(self, identity: str) -> Callable[[str], Any]:
        """Clients with the credentials of this identity; they do not repeat a call."""
        if identity not in self._clients:
            self._clients[identity] = self._new_clients(identity)
        return self._clients[identity]

    def _new_clients(self, identity: str) -> Callable[[str], Any]:
        keys = boxes.owner_keys(self.box)
        if identity != OWNER:
            sts, arn = boxes.client(self.box, "sts"), self.role_arn(identity)
            held = sts.assume_role(RoleArn=arn, RoleSessionName="thief")["Credentials"]
            keys = {"aws_access_key_id": held["AccessKeyId"], "aws_secret_access_key": "x", "aws_session_token": "x"}
        made: dict[str, Any] = {}

        def client(service: str) -> Any:
            if service not in made:
                made[service] = boto3.session.Session().client(
                    service, endpoint_url=self.box.url, region_name=REGION, config=_ONCE, **keys
                )
            return made[service]

        return client

    def role_arn(self, identity: str) -> str:
        """The ARN of an identity's role."""
        found: str = boxes.client(self.box, "iam").get_role(RoleName=self.roles[identity])["Role"]["Arn"]
        return found

    def names_for(self, identity: str, owner: str) -> Names:
        """The names of an owner's resources, with the clients of the identity."""
        return Names(owner, self.names[owner], self.clients(identity))


@contextmanager
def stolen_account(directory: Path) -> Iterator[Account]:
    """An account with the clusters `dev` and `near` on the base `dev`."""
    with boxes.running_box(directory / "box") as box:
        session = CliSession(project=copy_project(directory / "project", small=False), box=directory / "box")
        stacks = session.project / "stacks/cluster"
        spec = (stacks / f"Pulumi.{OWN}.yaml").read_text() + LOGIN
        for cluster in (OWN, NEAR):
            (stacks / f"Pulumi.{cluster}.yaml").write_text(spec)
        for cluster in (OWN, NEAR):
            done = session.run("up", cluster, "--yes")
            assert done.returncode == 0, done.stderr
        yield described(boxes.settle_tags(box))


def described(box: BoxStatus) -> Account:
    """The account of a box in which both clusters are up; adds people's roles and what belongs to somebody else."""
    clusters = {cluster: _cluster(box, cluster) for cluster in (OWN, NEAR)}
    create_deployer(boxes.client(box, "iam"))
    for name, policy in zip((*PEOPLE, ADMIN), access_policies(account=ACCOUNT, region=REGION), strict=True):
        _create_role(box, name, policy)
    theirs = {**clusters[OWN], **_strangers(box)}
    people = {name: name for name in (*PEOPLE, ADMIN, DEPLOYER)}
    machines = {name: clusters[OWN][f"{name}_role"] for name in MACHINES}
    neighbours = {f"near-{name}": clusters[NEAR][f"{name}_role"] for name in MACHINES}
    return Account(box=box, roles={**people, **machines, **neighbours}, names={**clusters, THEIRS: theirs})


def _create_role(box: BoxStatus, name: str, policy: Policy) -> None:
    iam = boxes.client(box, "iam")
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(_TRUST))
    made = iam.create_policy(PolicyName=policy.name, PolicyDocument=json.dumps(policy.document))
    iam.attach_role_policy(RoleName=name, PolicyArn=made["Policy"]["Arn"])


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
    secret = boxes.client(box, "secretsmanager").describe_secret(SecretId=f"corral/{cluster}/munge")["ARN"]
    volume = next(one for one in ec2.describe_volumes(Filters=[own])["Volumes"])
    systems = boxes.client(box, "fsx").describe_file_systems()["FileSystems"]
    lustre = next(one for one in systems if {"Key": "corral:cluster", "Value": cluster} in one["Tags"])
    alarms = boxes.client(box, "cloudwatch").describe_alarms()["MetricAlarms"]
    alarm = next(one for one in alarms if one["AlarmActions"][0].endswith(f"-{cluster}"))
    return {
        **roles,
        "head": head["InstanceId"],
        "node": node["InstanceId"],
        "login": login,
        "template": template["LaunchTemplateId"],
        "profile": profile["InstanceProfileName"],
        "zone": zone["Id"].rpartition("/")[2],
        "domain": f"{cluster}.corral.internal",
        "secret": secret,
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
        s3.put_object(Bucket=bucket, Key="clusters/x", Body=b"1")
    secret = boxes.client(box, "secretsmanager").create_secret(Name="team/payroll", SecretString="1")["ARN"]
    boxes.client(box, "logs").create_log_group(logGroupName="/payroll")
    boxes.client(box, "sns").create_topic(Name="payroll")
    boxes.client(box, "ssm").put_parameter(Name="/payroll/password", Value="1", Type="SecureString")
    boxes.client(box, "ecr").create_repository(repositoryName="payroll")
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
        "secret": secret,
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
        "image": image,
        "budget": "payroll",
        "address": ec2.allocate_address(Domain="vpc")["AllocationId"],
    }
