"""IAM: the policies of the deployer and the cluster's roles, and the API calls that they must allow."""
