"""The emulated account: its id, its default region, its partition, and its owner."""

from corral.model.partitions import COMMERCIAL

ACCOUNT = "123456789012"
REGION = "us-east-1"
PARTITION = COMMERCIAL.name
OWNER_ARN = f"arn:{PARTITION}:iam::{ACCOUNT}:user/corral-box"  # whose keys `corral box env` prints: an administrator
