"""Prepares an AWS account: state bucket, KMS key, service-linked roles, policies, documents."""
