"""Calls of EC2 and of its disks, networks and names: machines, launches, volumes, file systems, routes, DNS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stolen_account import NEAR, OWN, Names
from stolen_call import (
    BASE_TAGS,
    CLUSTER_TAGS,
    DEPLOYER,
    EC2,
    EFS,
    FSX,
    HEAD,
    IAM,
    NOBODY,
    POLICY,
    READERS,
    ZONE,
    Run,
    StolenCall,
    both,
    near,
    own,
    theirs,
)

from corral.box.account import REGION

_PUBLIC_KEY = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBERERERERERERERERERERERERERERERERERERERERER thief"


def calls_on_ec2() -> Iterator[StolenCall]:
    """All of these."""
    yield from _machines()
    yield from _launches()
    yield from _disks()
    yield from _network()
    yield from _balancers()


def _machines() -> Iterator[StolenCall]:
    instance = f"{EC2}:instance/{{head}}"
    yield from both(
        "ec2:TerminateInstances",
        f"{EC2}:instance/{{node}}",
        lambda n: n.aws("ec2").terminate_instances(InstanceIds=[n.node]),
        HEAD,
    )
    yield from both("ec2:StopInstances", instance, lambda n: n.aws("ec2").stop_instances(InstanceIds=[n.head]))
    yield from both(
        "ec2:CreateTags",
        instance,
        lambda n: n.aws("ec2").create_tags(Resources=[n.head], Tags=[{"Key": "corral:cluster", "Value": OWN}]),
    )
    yield from both(
        "ec2:ModifyInstanceAttribute",
        instance,
        lambda n: n.aws("ec2").modify_instance_attribute(InstanceId=n.head, UserData={"Value": b"IyEvYmluL3NoCg=="}),
    )
    yield from both("ec2:StartInstances", instance, lambda n: n.aws("ec2").start_instances(InstanceIds=[n.head]))
    yield from both(
        "ec2:RebootInstances", instance, lambda n: n.aws("ec2").reboot_instances(InstanceIds=[n.head]), NOBODY
    )
    yield from both(
        "ec2:ModifyInstanceMetadataOptions",
        instance,
        lambda n: n.aws("ec2").modify_instance_metadata_options(InstanceId=n.head, HttpTokens="optional"),
    )
    yield from both(
        "ec2:AssociateIamInstanceProfile",
        instance,
        lambda n: n.aws("ec2").associate_iam_instance_profile(
            IamInstanceProfile={"Name": n.profile}, InstanceId=n.head
        ),
        NOBODY,
    )
    yield from both(
        "ec2:CreateImage", instance, lambda n: n.aws("ec2").create_image(InstanceId=n.head, Name="copy"), NOBODY
    )
    # The box judges these two, as ModifyImageAttribute, on all resources, so no team of somebody else may.
    yield from both(
        "ec2:GetConsoleOutput",
        instance,
        lambda n: n.aws("ec2").get_console_output(InstanceId=n.head),
        NOBODY,
        may_theirs=NOBODY,
    )
    yield from both(
        "ec2:GetPasswordData",
        instance,
        lambda n: n.aws("ec2").get_password_data(InstanceId=n.head),
        NOBODY,
        may_theirs=NOBODY,
    )
    yield from both(
        "ec2:SendDiagnosticInterrupt",
        instance,
        lambda n: n.aws("ec2").send_diagnostic_interrupt(InstanceId=n.head),
        NOBODY,
    )
    yield from both(
        "ec2:CreateReplaceRootVolumeTask",
        instance,
        lambda n: n.aws("ec2").create_replace_root_volume_task(InstanceId=n.head),
        NOBODY,
    )
    yield from both(
        "ec2:DeleteTags",
        instance,
        lambda n: n.aws("ec2").delete_tags(Resources=[n.head], Tags=[{"Key": "corral:cluster"}]),
    )
    yield near(
        "ec2:DescribeInstances", "*", lambda n: n.aws("ec2").describe_instances(), ("head", "near-head", *READERS)
    )
    yield near(
        "ec2:DescribeInstanceAttribute",
        "*",
        lambda n: n.aws("ec2").describe_instance_attribute(InstanceId=n.head, Attribute="userData"),
        READERS,
    )


def _launches() -> Iterator[StolenCall]:
    template = f"{EC2}:launch-template/{{template}}"
    yield near(
        "ec2:RunInstances",
        template,
        lambda n: n.aws("ec2").run_instances(LaunchTemplate={"LaunchTemplateId": n.template}, MinCount=1, MaxCount=1),
        HEAD,
        CLUSTER_TAGS,
    )
    yield own(  # a machine that the neighbour's autoscaler would take for its own
        "ec2:CreateTags",
        f"{EC2}:instance/*",
        lambda n: n.aws("ec2").run_instances(
            LaunchTemplate={"LaunchTemplateId": n.template},
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "corral:cluster", "Value": NEAR}]}],
        ),
        DEPLOYER,
        keys={"ec2:CreateAction": "RunInstances", "aws:RequestTag/corral:cluster": NEAR},
    )
    # One's own machine with an interface that exists would have the address of its owner.
    interface, template_key = (
        f"{EC2}:network-interface/{{interface}}",
        {"ec2:LaunchTemplate": f"{EC2}:launch-template/lt-1"},
    )
    attach: Run = lambda n: n.aws("ec2").run_instances(  # noqa: E731
        LaunchTemplate={"LaunchTemplateId": n.own_template},
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[{"DeviceIndex": 0, "NetworkInterfaceId": n.interface}],
    )
    yield near("ec2:RunInstances", interface, attach, DEPLOYER, CLUSTER_TAGS, template_key)
    yield theirs("ec2:RunInstances", interface, attach, NOBODY, template_key)
    yield theirs(  # a deployer may launch, with roles of clusters alone
        "ec2:RunInstances",
        template,
        lambda n: n.aws("ec2").run_instances(LaunchTemplate={"LaunchTemplateId": n.template}, MinCount=1, MaxCount=1),
        DEPLOYER,
    )
    for build, may in ((near, DEPLOYER), (theirs, NOBODY)):
        yield build(
            "iam:PassRole",
            f"{IAM}:role/{{head_role}}" if build is theirs else f"{IAM}:role/corral/{{head_role}}",
            lambda n: n.aws("ec2").run_instances(
                ImageId=n.image, IamInstanceProfile={"Name": n.profile}, MinCount=1, MaxCount=1
            ),
            may,
            keys={"iam:PassedToService": "ec2.amazonaws.com"},
        )
    yield from both(
        "ec2:CreateLaunchTemplateVersion",
        template,
        lambda n: n.aws("ec2").create_launch_template_version(
            LaunchTemplateId=n.template, SourceVersion="1", LaunchTemplateData={"UserData": "IyEvYmluL3No"}
        ),
    )
    yield from both(
        "ec2:ModifyLaunchTemplate",
        template,
        lambda n: n.aws("ec2").modify_launch_template(LaunchTemplateId=n.template, DefaultVersion="1"),
    )
    yield from both(
        "ec2:DeleteLaunchTemplate",
        template,
        lambda n: n.aws("ec2").delete_launch_template(LaunchTemplateId=n.template),
    )
    spending: tuple[tuple[str, Run], ...] = (
        (
            "ec2:RequestSpotInstances",
            lambda n: n.aws("ec2").request_spot_instances(
                InstanceCount=1,
                LaunchSpecification={
                    "ImageId": n.image,
                    "InstanceType": "m7i.large",
                    "SecurityGroupIds": [n.group],
                    "SubnetId": n.subnet,
                },
            ),
        ),
        (
            "ec2:ImportKeyPair",
            lambda n: n.aws("ec2").import_key_pair(KeyName="mine", PublicKeyMaterial=_PUBLIC_KEY),
        ),
        ("ec2:EnableSerialConsoleAccess", lambda n: n.aws("ec2").enable_serial_console_access()),
        ("ec2:CreateKeyPair", lambda n: n.aws("ec2").create_key_pair(KeyName="thief")),
        (
            "ec2:CreateCapacityReservation",
            lambda n: n.aws("ec2").create_capacity_reservation(
                InstanceType="p5.48xlarge",
                InstancePlatform="Linux/UNIX",
                InstanceCount=1,
                AvailabilityZone="us-east-1a",
            ),
        ),
        (
            "ec2:PurchaseCapacityBlock",
            lambda n: n.aws("ec2").purchase_capacity_block(
                CapacityBlockOfferingId=n.offering, InstancePlatform="Linux/UNIX"
            ),
        ),
    )
    for action, run in spending:
        yield near(action, "*", run)


def _disks() -> Iterator[StolenCall]:
    volume = f"{EC2}:volume/{{volume}}"
    yield from both("ec2:CreateSnapshot", volume, lambda n: n.aws("ec2").create_snapshot(VolumeId=n.volume), NOBODY)
    attach: Run = lambda n: n.aws("ec2").attach_volume(VolumeId=n.volume, InstanceId=n.head, Device="/dev/sdz")  # noqa: E731
    detach: Run = lambda n: n.aws("ec2").detach_volume(VolumeId=n.volume)  # noqa: E731
    # The neighbour's is attached to its head.
    yield near("ec2:DetachVolume", volume, detach, DEPLOYER, CLUSTER_TAGS)
    yield from both("ec2:AttachVolume", volume, attach)
    yield theirs("ec2:DetachVolume", volume, detach)
    yield from both("ec2:ModifyVolume", volume, lambda n: n.aws("ec2").modify_volume(VolumeId=n.volume, Size=9))
    yield from both("ec2:DeleteVolume", volume, lambda n: n.aws("ec2").delete_volume(VolumeId=n.volume))
    yield theirs(
        "ec2:ModifyImageAttribute",
        f"arn:aws:ec2:{REGION}::image/{{image}}",
        lambda n: n.aws("ec2").modify_image_attribute(ImageId=n.image, OperationType="add", UserIds=["999999999999"]),
        NOBODY,
    )
    home, lustre = f"{EFS}/{{home}}", f"{FSX}/{{lustre}}"
    yield from both(
        "elasticfilesystem:PutFileSystemPolicy",
        home,
        lambda n: n.aws("efs").put_file_system_policy(FileSystemId=n.home, Policy=POLICY),
        NOBODY,
        tags=BASE_TAGS,
    )
    yield from both(
        "elasticfilesystem:DeleteFileSystemPolicy",
        home,
        lambda n: n.aws("efs").delete_file_system_policy(FileSystemId=n.home),
        NOBODY,
        tags=BASE_TAGS,
    )
    yield from both(
        "elasticfilesystem:CreateAccessPoint",
        home,
        lambda n: n.aws("efs").create_access_point(
            FileSystemId=n.home, ClientToken="x", PosixUser={"Uid": 0, "Gid": 0}
        ),
        NOBODY,
        tags=BASE_TAGS,
    )
    yield from both(
        "elasticfilesystem:CreateMountTarget",
        home,
        lambda n: n.aws("efs").create_mount_target(FileSystemId=n.home, SubnetId=n.subnet),
        tags=BASE_TAGS,
    )
    yield from both(
        "elasticfilesystem:TagResource",
        home,
        lambda n: n.aws("efs").tag_resource(ResourceId=n.home, Tags=[{"Key": "corral:base", "Value": "dev"}]),
        tags=BASE_TAGS,
    )
    yield from both(
        "fsx:UpdateFileSystem",
        lustre,
        lambda n: n.aws("fsx").update_file_system(FileSystemId=n.lustre, StorageCapacity=2400),
    )
    yield from both("fsx:CreateBackup", lustre, lambda n: n.aws("fsx").create_backup(FileSystemId=n.lustre), NOBODY)
    yield from both(
        "fsx:CreateDataRepositoryTask",
        lustre,
        lambda n: n.aws("fsx").create_data_repository_task(
            Type="EXPORT_TO_REPOSITORY", FileSystemId=n.lustre, Report={"Enabled": False}
        ),
        NOBODY,
    )
    yield from both("fsx:DeleteFileSystem", lustre, lambda n: n.aws("fsx").delete_file_system(FileSystemId=n.lustre))
    yield from both(
        "elasticfilesystem:DeleteFileSystem",
        home,
        lambda n: n.aws("efs").delete_file_system(FileSystemId=n.home),
        tags=BASE_TAGS,
    )


def _balancers() -> Iterator[StolenCall]:
    """A load balancer of somebody else would lead into a cluster, or one of a cluster's to them."""
    service, balancer, targets = "elasticloadbalancing", "{balancer}", "{targets}"
    off = [{"Key": "deletion_protection.enabled", "Value": "false"}]
    yield from both(
        f"{service}:ModifyLoadBalancerAttributes",
        balancer,
        lambda n: n.aws("elbv2").modify_load_balancer_attributes(LoadBalancerArn=n.balancer, Attributes=off),
    )
    yield theirs(
        f"{service}:SetSecurityGroups",
        balancer,
        lambda n: n.aws("elbv2").set_security_groups(LoadBalancerArn=n.balancer, SecurityGroups=[n.balancer_group]),
    )
    for resource in (balancer, targets):
        yield theirs(
            f"{service}:AddTags",
            resource,
            lambda n, name=resource: n.aws("elbv2").add_tags(
                ResourceArns=[getattr(n, name.strip("{}"))], Tags=[{"Key": "corral:base", "Value": "dev"}]
            ),
        )
    yield from both(
        f"{service}:RegisterTargets",
        targets,
        lambda n: n.aws("elbv2").register_targets(TargetGroupArn=n.targets, Targets=[{"Id": n.head}]),
    )
    yield theirs(
        f"{service}:DeleteTargetGroup",
        targets,
        lambda n: n.aws("elbv2").delete_target_group(TargetGroupArn=n.targets),
    )
    yield from both(
        f"{service}:DeleteLoadBalancer",
        balancer,
        lambda n: n.aws("elbv2").delete_load_balancer(LoadBalancerArn=n.balancer),
    )


def _network() -> Iterator[StolenCall]:
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    group, table = f"{EC2}:security-group/{{group}}", f"{EC2}:route-table/{{table}}"
    yield from both(
        "ec2:AuthorizeSecurityGroupIngress",
        group,
        lambda n: n.aws("ec2").authorize_security_group_ingress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from both(
        "ec2:AuthorizeSecurityGroupEgress",
        group,
        lambda n: n.aws("ec2").authorize_security_group_egress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from both(
        "ec2:RevokeSecurityGroupIngress",
        group,
        lambda n: n.aws("ec2").revoke_security_group_ingress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from both(
        "ec2:RevokeSecurityGroupEgress",
        group,
        lambda n: n.aws("ec2").revoke_security_group_egress(GroupId=n.group, IpPermissions=[rule]),
    )
    yield from both("ec2:DeleteSecurityGroup", group, lambda n: n.aws("ec2").delete_security_group(GroupId=n.group))
    yield from both(
        "ec2:CreateRoute",
        table,
        lambda n: n.aws("ec2").create_route(
            RouteTableId=n.table, DestinationCidrBlock="10.7.0.0/16", GatewayId=n.gateway
        ),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:ReplaceRoute",
        table,
        lambda n: n.aws("ec2").replace_route(
            RouteTableId=n.table, DestinationCidrBlock="10.7.0.0/16", GatewayId=n.gateway
        ),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:DeleteRoute",
        table,
        lambda n: n.aws("ec2").delete_route(RouteTableId=n.table, DestinationCidrBlock="10.7.0.0/16"),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:AssociateRouteTable",
        table,
        lambda n: n.aws("ec2").associate_route_table(RouteTableId=n.table, SubnetId=n.subnet),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:ModifySubnetAttribute",
        f"{EC2}:subnet/{{subnet}}",
        lambda n: n.aws("ec2").modify_subnet_attribute(SubnetId=n.subnet, MapPublicIpOnLaunch={"Value": True}),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:CreateVpcPeeringConnection",
        f"{EC2}:vpc/{{vpc}}",
        lambda n: n.aws("ec2").create_vpc_peering_connection(VpcId=n.vpc, PeerVpcId=n.other_vpc),
        NOBODY,
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:CreateFlowLogs",
        f"{EC2}:vpc/{{vpc}}",
        lambda n: n.aws("ec2").create_flow_logs(
            ResourceIds=[n.vpc], ResourceType="VPC", LogDestinationType="s3", LogDestination="arn:aws:s3:::thief"
        ),
        NOBODY,
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:DeleteRouteTable", table, lambda n: n.aws("ec2").delete_route_table(RouteTableId=n.table), tags=BASE_TAGS
    )
    yield from both(
        "ec2:DeleteSubnet",
        f"{EC2}:subnet/{{subnet}}",
        lambda n: n.aws("ec2").delete_subnet(SubnetId=n.subnet),
        tags=BASE_TAGS,
    )
    yield from both(
        "ec2:DeleteVpc", f"{EC2}:vpc/{{vpc}}", lambda n: n.aws("ec2").delete_vpc(VpcId=n.vpc), tags=BASE_TAGS
    )
    yield from both(
        "ec2:ReleaseAddress",
        f"{EC2}:elastic-ip/{{address}}",
        lambda n: n.aws("ec2").release_address(AllocationId=n.address),
        tags=BASE_TAGS,
    )
    yield from _names()


def _names() -> Iterator[StolenCall]:
    def change(n: Names) -> Any:
        record = {"Name": f"x.{n.domain}", "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "10.0.0.1"}]}
        changes = [{"Action": "UPSERT", "ResourceRecordSet": record}]
        return n.aws("route53").change_resource_record_sets(HostedZoneId=n.zone, ChangeBatch={"Changes": changes})

    changed, key = "route53:ChangeResourceRecordSets", "route53:ChangeResourceRecordSetsNormalizedRecordNames"
    yield near(changed, ZONE, change, HEAD, keys={key: f"x.{NEAR}.corral.internal"})
    yield theirs(changed, ZONE, change, keys={key: "x.corp.example"})
    yield near(
        "route53:ListResourceRecordSets",
        ZONE,
        lambda n: n.aws("route53").list_resource_record_sets(HostedZoneId=n.zone),
        HEAD,
    )
