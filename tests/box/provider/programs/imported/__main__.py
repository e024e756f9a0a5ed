"""Import existing objects: VPC, BUCKET and PARAMETER name them."""

import os

import pulumi
import pulumi_aws as aws

provider = aws.Provider("aws", region="us-east-1")


def adopting(id: str) -> pulumi.ResourceOptions:
    """Options that import the object with this id."""
    return pulumi.ResourceOptions(provider=provider, import_=id)


aws.ec2.Vpc("v", cidr_block="10.0.0.0/16", tags={"Name": "old"}, opts=adopting(os.environ["VPC"]))
aws.s3.Bucket("b", bucket=os.environ["BUCKET"], force_destroy=True, opts=adopting(os.environ["BUCKET"]))
aws.ssm.Parameter("p", name=os.environ["PARAMETER"], type="String", value="x", opts=adopting(os.environ["PARAMETER"]))
