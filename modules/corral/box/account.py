"""The emulated account: its id and its default region."""

ACCOUNT = "123456789012"
REGION = "us-east-1"
