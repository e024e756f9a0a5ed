"""A small base: several kinds of resources, enough to be killed in between, quick to create."""

import pulumi
import pulumi_aws as aws

tags = {"corral:base": pulumi.get_stack()}
provider = aws.Provider("aws", region="us-east-1", default_tags=aws.ProviderDefaultTagsArgs(tags=tags))
opts = pulumi.ResourceOptions(provider=provider)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16", tags={"Name": "vpc"}, opts=opts)
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id, tags={"Name": "gateway"}, opts=opts)
for number in range(4):
    subnet = aws.ec2.Subnet(
        f"subnet-{number}",
        vpc_id=vpc.id,
        cidr_block=f"10.0.{number}.0/24",
        tags={"Name": f"subnet-{number}"},
        opts=opts,
    )
    table = aws.ec2.RouteTable(f"table-{number}", vpc_id=vpc.id, tags={"Name": f"table-{number}"}, opts=opts)
    aws.ec2.RouteTableAssociation(f"use-{number}", subnet_id=subnet.id, route_table_id=table.id, opts=opts)
    aws.ec2.Route(
        f"out-{number}",
        route_table_id=table.id,
        destination_cidr_block="0.0.0.0/0",
        gateway_id=gateway.id,
        opts=opts,
    )
pulumi.export("vpc", vpc.id)
