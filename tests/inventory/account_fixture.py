"""An account with one resource of every kind that corral creates, as an interrupted deployment may leave it."""

from __future__ import annotations

from typing import Any

BASE = {"corral:base": "dev"}
CLUSTER = {**BASE, "corral:cluster": "dev"}
ASSUME = '{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ec2.amazonaws.com"}}'
TRUST = '{"Version":"2012-10-17","Statement":[' + ASSUME + "]}"
BUCKET = "corral-dev-123456789012-us-east-1"
NOTHING = '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}'


def pairs(tags: dict[str, str], name: str) -> list[dict[str, str]]:
    """The tags as most services take them."""
    return [{"Key": key, "Value": value} for key, value in {**tags, "Name": name}.items()]


def specified(kind: str, tags: dict[str, str], name: str) -> dict[str, Any]:
    """The argument by which EC2 takes tags."""
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": pairs(tags, name)}]}


def furnish(session: Any) -> None:
    """Makes everything, with references among them as real stacks have."""
    subnet = _network(session.client("ec2"))
    _machines(session.client("ec2"), subnet)
    _around(session)
    _identity(session.client("iam"))
    system = session.client("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        Tags=pairs(CLUSTER, "scratch"),
    )
    assert system["FileSystem"]["FileSystemId"]
    _balancer(session.client("elbv2"), subnet)
    keep(session, subnet)


def _balancer(elbv2: Any, subnet: str) -> None:
    """A load balancer whose listener forwards to a target group."""
    tags = pairs(CLUSTER, "login")
    balancer = elbv2.create_load_balancer(Name="login", Type="network", Scheme="internal", Subnets=[subnet], Tags=tags)
    arn = balancer["LoadBalancers"][0]["LoadBalancerArn"]
    vpc = balancer["LoadBalancers"][0]["VpcId"]
    group = elbv2.create_target_group(Name="targets", Protocol="TCP", Port=22, VpcId=vpc, Tags=tags)
    forward = [{"Type": "forward", "TargetGroupArn": group["TargetGroups"][0]["TargetGroupArn"]}]
    elbv2.create_listener(LoadBalancerArn=arn, Protocol="TCP", Port=22, DefaultActions=forward, Tags=tags)


def keep(session: Any, subnet: str) -> None:
    """Makes what a base keeps: a bucket with two versions and a mark of deletion, a mounted home, a key."""
    s3, efs, kms = session.client("s3"), session.client("efs"), session.client("kms")
    key_tags = {**BASE, "corral:keep": "key", "Name": "corral-dev-key"}
    key = kms.create_key(Tags=[{"TagKey": key, "TagValue": value} for key, value in key_tags.items()])["KeyMetadata"]
    kms.create_alias(AliasName="alias/corral-dev", TargetKeyId=key["KeyId"])
    s3.create_bucket(Bucket=BUCKET)
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key["Arn"]}}
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={"Rules": [rule]})
    tags = pairs({**BASE, "corral:keep": "artefacts"}, "corral-dev-artefacts")
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=BUCKET, Key="clusters/dev/slurm/slurm.conf", Body=b"z" * 1024)
    for content in (b"x" * 1024, b"y" * 1024):
        s3.put_object(Bucket=BUCKET, Key="checkpoints/1", Body=content)
    s3.delete_object(Bucket=BUCKET, Key="checkpoints/1")
    tags = pairs({**BASE, "corral:keep": "home"}, "corral-dev-home")
    home = efs.create_file_system(CreationToken="t", Encrypted=True, KmsKeyId=key["Arn"], Tags=tags)
    efs.create_mount_target(FileSystemId=home["FileSystemId"], SubnetId=subnet)


def _network(ec2: Any) -> str:
    vpc = ec2.create_vpc(CidrBlock="10.64.0.0/16", **specified("vpc", BASE, "vpc"))["Vpc"]["VpcId"]
    subnet: str = ec2.create_subnet(
        VpcId=vpc, CidrBlock="10.64.0.0/24", AvailabilityZoneId="use1-az1", **specified("subnet", BASE, "private")
    )["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway(**specified("internet-gateway", BASE, "internet"))["InternetGateway"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc, **specified("route-table", BASE, "routes"))["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    address = ec2.allocate_address(Domain="vpc", **specified("elastic-ip", BASE, "nat"))["AllocationId"]
    ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address, **specified("natgateway", BASE, "nat"))
    ec2.create_vpc_endpoint(
        VpcId=vpc,
        ServiceName="com.amazonaws.us-east-1.s3",
        RouteTableIds=[table],
        **specified("vpc-endpoint", BASE, "s3"),
    )
    _groups(ec2, vpc)
    return subnet


def _groups(ec2: Any, vpc: str) -> None:
    one, other = (
        ec2.create_security_group(
            GroupName=name, Description=name, VpcId=vpc, **specified("security-group", CLUSTER, name)
        )["GroupId"]
        for name in ("one", "other")
    )
    for group, source in ((one, other), (other, one), (one, one)):
        rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": source}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])


def _machines(ec2: Any, subnet: str) -> None:
    ec2.create_network_interface(SubnetId=subnet, **specified("network-interface", CLUSTER, "head"))
    ec2.create_volume(
        Size=50, VolumeType="gp3", AvailabilityZone="us-east-1a", **specified("volume", CLUSTER, "head-state")
    )
    ec2.create_placement_group(
        GroupName="train-use1-az1", Strategy="cluster", **specified("placement-group", CLUSTER, "group")
    )
    ec2.create_launch_template(
        LaunchTemplateName="train-spot",
        LaunchTemplateData={"InstanceType": "m7i.xlarge"},
        **specified("launch-template", CLUSTER, "template"),
    )
    image = ec2.describe_images()["Images"][0]["ImageId"]
    queue = {**CLUSTER, "corral:queue": "train", "corral:offer": "train-spot-use1-az1"}
    ec2.run_instances(
        ImageId=image,
        InstanceType="m7i.xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        **specified("instance", queue, "node"),
    )


def _around(session: Any) -> None:
    session.client("logs").create_log_group(logGroupName="/corral/dev", tags=CLUSTER)
    session.client("ssm").put_parameter(
        Name="/corral/dev/image", Value="ami-1", Type="String", Tags=pairs(CLUSTER, "image")
    )
    session.client("secretsmanager").create_secret(
        Name="corral/dev/munge", SecretString="x", Tags=pairs(CLUSTER, "munge")
    )
    session.client("sns").create_topic(Name="topic", Tags=pairs(CLUSTER, "topic"))
    session.client("cloudwatch").put_metric_alarm(
        AlarmName="head-alarm",
        Namespace="AWS/EC2",
        MetricName="StatusCheckFailed",
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=2,
        Threshold=1,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        Tags=pairs(CLUSTER, "alarm"),
    )
    kms = session.client("kms")
    key_tags = {**BASE, "Name": "corral-dev-signing-key"}
    tags = [{"TagKey": key, "TagValue": value} for key, value in key_tags.items()]
    made = kms.create_key(KeyUsage="SIGN_VERIFY", KeySpec="RSA_2048", Tags=tags)["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName="alias/corral-signing/dev", TargetKeyId=made)
    route53 = session.client("route53")
    zone = route53.create_hosted_zone(Name="dev.corral.internal", CallerReference="1")["HostedZone"]["Id"]
    route53.change_tags_for_resource(
        ResourceType="hostedzone", ResourceId=zone.removeprefix("/hostedzone/"), AddTags=pairs(CLUSTER, "names")
    )
    budget = {
        "BudgetName": "corral-dev",
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "100", "Unit": "USD"},
        "CostFilters": {"TagKeyValue": ["user:corral:base$dev"]},
    }
    session.client("budgets").create_budget(AccountId="123456789012", Budget=budget)
    record = {"Name": "head.dev.corral.internal", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.64.0.11"}]}
    change = {"Action": "CREATE", "ResourceRecordSet": record}
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": [change]})


def _identity(iam: Any) -> None:
    iam.create_role(RoleName="identity-head-1", AssumeRolePolicyDocument=TRUST, Tags=pairs(CLUSTER, "head"))
    iam.put_role_policy(RoleName="identity-head-1", PolicyName="inline", PolicyDocument=NOTHING)
    iam.create_instance_profile(InstanceProfileName="identity-head-profile-1", Tags=pairs(CLUSTER, "head"))
    iam.add_role_to_instance_profile(InstanceProfileName="identity-head-profile-1", RoleName="identity-head-1")
    policy = iam.create_policy(PolicyName="guards-boundary-1", PolicyDocument=NOTHING, Tags=pairs(BASE, "boundary"))
    iam.attach_role_policy(RoleName="identity-head-1", PolicyArn=policy["Policy"]["Arn"])
