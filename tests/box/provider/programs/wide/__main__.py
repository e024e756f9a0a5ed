"""One resource of every supported type, as the stacks declare it; WIDE (JSON) changes details."""

import json
import os

import pulumi
import pulumi_aws as aws

config = json.loads(os.environ.get("WIDE", "{}"))
provider = aws.Provider(
    "aws",
    region="us-east-1",
    default_tags=aws.ProviderDefaultTagsArgs(tags={"corral:env": config.get("env") or "dev"}),
)
options = pulumi.ResourceOptions(provider=provider)
parameters = pulumi.InvokeOptions(provider=provider)


def policy(*actions: str) -> str:
    """A policy document that allows the actions."""
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]}
    )


def trust(service: str) -> str:
    """A trust policy for a service."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


# --- network
vpc = aws.ec2.Vpc(
    "main",
    cidr_block="10.64.0.0/16",
    enable_dns_hostnames=True,
    tags={"Name": config.get("name") or "main"},
    opts=options,
)
subnet = aws.ec2.Subnet(
    "a", vpc_id=vpc.id, cidr_block="10.64.0.0/20", availability_zone_id="use1-az1", tags={"Name": "a"}, opts=options
)
aws.ec2.SubnetCidrReservation(
    "head",
    subnet_id=subnet.id,
    cidr_block="10.64.0.0/28",
    reservation_type="explicit",
    description="fixed",
    opts=options,
)
gateway = aws.ec2.InternetGateway("main", vpc_id=vpc.id, opts=options)
address = aws.ec2.Eip("nat", domain="vpc", opts=options)
nat = aws.ec2.NatGateway(
    "nat",
    allocation_id=address.id,
    subnet_id=subnet.id,
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[gateway]),
)
table = aws.ec2.RouteTable("private", vpc_id=vpc.id, opts=options)
aws.ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", nat_gateway_id=nat.id, opts=options)
aws.ec2.RouteTableAssociation("a", route_table_id=table.id, subnet_id=subnet.id, opts=options)
group = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id, description="nodes of a cluster", opts=options)
aws.vpc.SecurityGroupIngressRule(
    "self", security_group_id=group.id, referenced_security_group_id=group.id, ip_protocol="-1", opts=options
)
aws.vpc.SecurityGroupIngressRule(
    "ssh",
    security_group_id=group.id,
    cidr_ipv4="10.64.0.0/16",
    ip_protocol="tcp",
    from_port=22,
    to_port=22,
    description=config.get("ssh") or "from the VPC",
    opts=options,
)
aws.vpc.SecurityGroupEgressRule(
    "all", security_group_id=group.id, cidr_ipv4="0.0.0.0/0", ip_protocol="-1", opts=options
)
aws.ec2.VpcEndpoint(
    "s3",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.s3",
    vpc_endpoint_type="Gateway",
    route_table_ids=[table.id],
    opts=options,
)
aws.ec2.VpcEndpoint(
    "ssm",
    vpc_id=vpc.id,
    service_name="com.amazonaws.us-east-1.ssm",
    vpc_endpoint_type="Interface",
    private_dns_enabled=True,
    subnet_ids=[subnet.id],
    security_group_ids=[group.id],
    opts=options,
)

# --- identity
key = aws.kms.Key("main", description="all data", enable_key_rotation=True, deletion_window_in_days=7, opts=options)
alias = aws.kms.Alias("main", target_key_id=key.key_id, opts=options)
boundary = aws.iam.Policy("boundary", policy=policy("*"), description="the most that a role may do", opts=options)
role = aws.iam.Role(
    "head",
    assume_role_policy=trust("ec2.amazonaws.com"),
    permissions_boundary=boundary.arn,
    description="of the head node",
    opts=options,
)
aws.iam.RolePolicy("launch", role=role.name, policy=policy("ec2:RunInstances", "ec2:Describe*"), opts=options)
profile = aws.iam.InstanceProfile("head", role=role.name, opts=options)

# --- storage
bucket = aws.s3.Bucket("data", force_destroy=True, opts=options)
aws.s3.BucketVersioning("data", bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=options)
aws.s3.BucketPublicAccessBlock(
    "data",
    bucket=bucket.id,
    block_public_acls=True,
    block_public_policy=True,
    ignore_public_acls=True,
    restrict_public_buckets=True,
    opts=options,
)
aws.s3.BucketServerSideEncryptionConfiguration(
    "data",
    bucket=bucket.id,
    rules=[
        {
            "apply_server_side_encryption_by_default": {"sse_algorithm": "aws:kms", "kms_master_key_id": key.arn},
            "bucket_key_enabled": True,
        }
    ],
    opts=options,
)
aws.s3.BucketPolicy(
    "data",
    bucket=bucket.id,
    policy=pulumi.Output.json_dumps(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Sid": "Nodes",
                    "Effect": "Allow",
                    "Principal": {"AWS": role.arn},
                    "Action": ["s3:GetObject", "s3:ListBucket"],
                    "Resource": [bucket.arn, pulumi.Output.concat(bucket.arn, "/*")],
                }
            ],
        }
    ),
    opts=options,
)
aws.s3.BucketLifecycleConfiguration(
    "data",
    bucket=bucket.id,
    rules=[
        {
            "id": "old-versions",
            "status": "Enabled",
            "noncurrent_version_expiration": {"noncurrent_days": 30},
            "abort_incomplete_multipart_upload": {"days_after_initiation": 3},
        },
        {"id": "trash", "status": "Enabled", "filter": {"prefix": "trash/"}, "expiration": {"days": 7}},
    ],
    opts=options,
)
aws.s3.BucketOwnershipControls("data", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=options)
lines = "\n".join(["ClusterName=dev", f"NodeName=train-[1-{config.get('max') or '4'}] State=CLOUD", "# end"])
slurm = aws.s3.BucketObjectv2(
    "slurm.conf", bucket=bucket.id, key="slurm/slurm.conf", content=lines, content_type="text/plain", opts=options
)
aws.s3.BucketObjectv2(
    "agent.tar", bucket=bucket.id, key="agent.tar", source=pulumi.StringAsset("not a tar"), opts=options
)
home = aws.efs.FileSystem(
    "home",
    creation_token="home",
    encrypted=True,
    kms_key_id=key.arn,
    throughput_mode="elastic",
    lifecycle_policies=[{"transition_to_ia": "AFTER_30_DAYS"}],
    tags={"Name": "home"},
    opts=options,
)
aws.efs.MountTarget("home-a", file_system_id=home.id, subnet_id=subnet.id, security_groups=[group.id], opts=options)
aws.efs.BackupPolicy("home", file_system_id=home.id, backup_policy={"status": "ENABLED"}, opts=options)
lustre = aws.fsx.LustreFileSystem(
    "scratch",
    subnet_ids=subnet.id,
    security_group_ids=[group.id],
    storage_capacity=config.get("lustre") or 1200,
    deployment_type="SCRATCH_2",
    data_compression_type="LZ4",
    opts=options,
)
aws.fsx.DataRepositoryAssociation(
    "corpus",
    file_system_id=lustre.id,
    file_system_path="/data",
    data_repository_path=pulumi.Output.concat("s3://", bucket.bucket, "/corpus"),
    batch_import_meta_data_on_create=True,
    delete_data_in_filesystem=False,
    s3={
        "auto_import_policy": {"events": ["NEW", "CHANGED", "DELETED"]},
        "auto_export_policy": {"events": ["NEW", "CHANGED", "DELETED"]},
    },
    opts=options,
)

# --- machines
spread = aws.ec2.PlacementGroup("train", strategy="cluster", opts=options)
IMAGE = aws.ssm.get_parameter(name="/corral-box/ami", opts=parameters).value
interfaces = [
    {
        "device_index": 0 if card == 0 else 1,
        "network_card_index": card,
        "interface_type": "interface" if card == 0 else "efa-only",
        "subnet_id": subnet.id,
        "security_groups": [group.id],
        "delete_on_termination": "true",
        "associate_public_ip_address": "false" if card == 0 else None,
    }
    for card in range(4)
]
template = aws.ec2.LaunchTemplate(
    "train-spot-a",
    image_id=IMAGE,
    instance_type="p4d.24xlarge",
    instance_initiated_shutdown_behavior="terminate",
    update_default_version=True,
    user_data=config.get("user_data") or "IyEvYmluL3NoCg==",
    iam_instance_profile={"arn": profile.arn},
    monitoring={"enabled": False},
    network_interfaces=interfaces,
    instance_market_options={"market_type": "spot", "spot_options": {"spot_instance_type": "one-time"}},
    placement={"group_name": spread.name},
    metadata_options={
        "http_endpoint": "enabled",
        "http_tokens": "required",
        "http_put_response_hop_limit": 1,
        "instance_metadata_tags": "enabled",
    },
    block_device_mappings=[
        {
            "device_name": "/dev/sda1",
            "ebs": {"volume_size": 100, "volume_type": "gp3", "encrypted": "true", "delete_on_termination": "true"},
        }
    ],
    tag_specifications=[{"resource_type": "instance", "tags": {"corral:queue": "train"}}],
    opts=options,
)
port = aws.ec2.NetworkInterface(
    "head",
    subnet_id=subnet.id,
    private_ips=["10.64.0.11"],
    security_groups=[group.id],
    description="the head's fixed address",
    opts=options,
)
state = aws.ebs.Volume(
    "state",
    availability_zone=subnet.availability_zone,
    size=config.get("state") or 20,
    type="gp3",
    encrypted=True,
    kms_key_id=key.arn,
    opts=options,
)
head = aws.ec2.Instance(
    "head",
    ami=config.get("image") or IMAGE,
    instance_type="m7i.2xlarge",
    primary_network_interface={"network_interface_id": port.id},
    iam_instance_profile=profile.name,
    instance_initiated_shutdown_behavior="stop",
    user_data=config.get("user_data_of_head") or "#!/bin/sh\n",
    user_data_replace_on_change=True,
    metadata_options={"http_tokens": "required", "http_put_response_hop_limit": 1, "instance_metadata_tags": "enabled"},
    root_block_device={"volume_size": 50, "volume_type": "gp3", "encrypted": True, "kms_key_id": key.arn},
    tags={"Name": "head"},
    opts=pulumi.ResourceOptions(provider=provider, delete_before_replace=True),
)
aws.ec2.VolumeAttachment(
    "state",
    device_name="/dev/sdf",
    instance_id=head.id,
    volume_id=state.id,
    stop_instance_before_detaching=True,
    opts=pulumi.ResourceOptions(provider=provider, delete_before_replace=True),
)

# --- guards and names
topic = aws.sns.Topic("alerts", display_name="corral", opts=options)
aws.sns.TopicSubscription("mail", topic=topic.arn, protocol="email", endpoint="a@b.c", opts=options)
aws.cloudwatch.LogGroup("head", name="/corral/dev/head", retention_in_days=config.get("retention") or 30, opts=options)
aws.cloudwatch.MetricAlarm(
    "head-down",
    comparison_operator="GreaterThanThreshold",
    evaluation_periods=2,
    metric_name="StatusCheckFailed",
    namespace="AWS/EC2",
    dimensions={"InstanceId": head.id},
    period=60,
    statistic="Maximum",
    threshold=0.5,
    alarm_actions=[topic.arn],
    treat_missing_data="breaching",
    opts=options,
)
aws.budgets.Budget(
    "month",
    budget_type="COST",
    time_unit="MONTHLY",
    limit_amount="20000",
    limit_unit="USD",
    cost_filters=[{"name": "TagKeyValue", "values": ["user:corral:env$dev"]}],
    notifications=[
        {
            "comparison_operator": "GREATER_THAN",
            "notification_type": "ACTUAL",
            "threshold": 80,
            "threshold_type": "PERCENTAGE",
            "subscriber_email_addresses": ["a@b.c"],
        }
    ],
    opts=options,
)
parameter = aws.ssm.Parameter(
    "image", name="/corral/dev/image", type="String", value=config.get("image") or IMAGE, opts=options
)
aws.ssm.Parameter(
    "token", name="/corral/dev/token", type="SecureString", value=pulumi.Output.secret("s3cret"), opts=options
)
secret = aws.secretsmanager.Secret("munge", recovery_window_in_days=0, description="made by the head", opts=options)
zone = aws.route53.Zone(
    "private", name="dev.corral.internal", vpcs=[{"vpc_id": vpc.id}], force_destroy=True, opts=options
)
aws.route53.Record("head", zone_id=zone.zone_id, name="head", type="A", ttl=30, records=[port.private_ip], opts=options)

# --- functions
found = aws.resourcegroupstaggingapi.get_resources(
    tag_filters=[{"key": "corral:env", "values": ["nowhere"]}], opts=parameters
)
pulumi.export("found", len(found.resource_tag_mapping_lists))
pulumi.export("account", aws.get_caller_identity(opts=parameters).account_id)
pulumi.export("vpc", vpc.id)
pulumi.export("subnet", subnet.id)
pulumi.export("zone_name", subnet.availability_zone)
pulumi.export("group", group.id)
pulumi.export("bucket", bucket.bucket)
pulumi.export("slurm_etag", slurm.etag)
pulumi.export("head", head.id)
pulumi.export("head_address", head.private_ip)
pulumi.export("interface", port.id)
pulumi.export("state", state.id)
pulumi.export("template", template.id)
pulumi.export("template_version", template.latest_version)
pulumi.export("template_default", template.default_version)
pulumi.export("home_dns", home.dns_name)
pulumi.export("lustre", lustre.id)
pulumi.export("lustre_mount", lustre.mount_name)
pulumi.export("secret", secret.arn)
pulumi.export("parameter", parameter.version)
pulumi.export("zone", zone.zone_id)
