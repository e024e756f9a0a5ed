"""IAM roles and policies, KMS keys, secrets and parameters."""
