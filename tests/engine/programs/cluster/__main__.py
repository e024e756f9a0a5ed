"""A small cluster on the small base, with a text whose changes a preview shows."""

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
pulumi.export("base", spec["base"])
pulumi.export("profile", pulumi.Config("corral-cluster").get("imageProfile"))
