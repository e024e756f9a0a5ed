"""The emulated account: its id, the access key of its owner, and the default region."""

ACCOUNT = "123456789012"
ACCESS_KEY = "AKIACORRALBOX0000000"
REGION = "us-east-1"
