"""What a program of an ordinary user reaches on a machine: a role of AWS's, the metadata service, the munge key."""

import socket
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, "/opt/corral/library")  # boto3, as the box's machines have it

import boto3

ROUTER = "http://10.64.0.1"  # where the box's AWS answers

arn = boto3.client("sts", region_name="us-east-1", endpoint_url=ROUTER).get_caller_identity()["Arn"]
_, role, session = arn.split("/")
sys.stdout.write(f"{role.split('-')[1]} {session}\n")
with socket.socket() as metadata:
    metadata.settimeout(2)
    sys.stdout.write(f"metadata {metadata.connect_ex(('169.254.169.254', 80))}\n")
with suppress(PermissionError):
    sys.stdout.write(f"munge key: {len(Path('/etc/munge/munge.key').read_bytes())} bytes\n")
