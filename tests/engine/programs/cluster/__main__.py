"""A small cluster on the small base: a head with its volume, and a text whose changes a preview shows."""

import pulumi
import pulumi_aws as aws

spec = pulumi.Config("corral-cluster").require_object("spec")
base = pulumi.StackReference("base", stack_name=f"organization/corral-base/{spec['base']}")
tags = {"corral:base": spec["base"], "corral:cluster": pulumi.get_stack()}
provider = aws.Provider("aws", region="us-east-1", default_tags=aws.ProviderDefaultTagsArgs(tags=tags))
opts = pulumi.ResourceOptions(provider=provider)
group = aws.ec2.SecurityGroup("group", vpc_id=base.require_output("vpc"), tags={"Name": "group"}, opts=opts)
bucket = aws.s3.Bucket("bucket", bucket=f"corral-test-{pulumi.get_stack()}", opts=opts)
queue = spec["queues"][0]
nodes = queue["nodes"]["max"]
aws.ec2.PlacementGroup(f"queues-group-{queue['name']}-use1-az1", strategy="cluster", opts=opts)
aws.s3.BucketObjectv2(
    "slurm.conf",
    bucket=bucket.bucket,
    key="slurm.conf",
    content=f"# nodes\nNodeName=train-[1-{nodes}] State=CLOUD\n# end\n",
    opts=opts,
)
subnet = aws.ec2.Subnet(
    "subnet",
    vpc_id=base.require_output("vpc"),
    cidr_block="10.0.9.0/24",
    availability_zone="us-east-1b",
    tags={"Name": "subnet"},
    opts=opts,
)
head = aws.ec2.Instance(
    "head",
    ami=aws.ssm.get_parameter(name="/corral-box/ami", opts=pulumi.InvokeOptions(provider=provider)).value,
    instance_type="m7i.xlarge",
    subnet_id=subnet.id,
    tags={"Name": "head"},
    opts=opts,
)
volume = aws.ebs.Volume("state", availability_zone=head.availability_zone, size=1, tags={"Name": "state"}, opts=opts)
aws.ec2.VolumeAttachment(
    "state",
    device_name="/dev/sdf",
    instance_id=head.id,
    volume_id=volume.id,
    stop_instance_before_detaching=True,
    opts=opts,
)
pulumi.export("base", spec["base"])
pulumi.export("profile", pulumi.Config("corral-cluster").get("imageProfile"))
