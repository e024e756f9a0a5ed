"""A program with an unsupported resource, by WHAT: type, argument or region."""

import os

import pulumi
import pulumi_aws as aws

provider = aws.Provider("aws", region="us-east-1")
options = pulumi.ResourceOptions(provider=provider)
match os.environ["WHAT"]:
    case "type":
        aws.sqs.Queue("q", opts=options)
    case "argument":
        aws.ec2.Vpc("v", cidr_block="10.0.0.0/16", ipv6_netmask_length=56, opts=options)
    case "program":
        raise ValueError("wrong on purpose")
