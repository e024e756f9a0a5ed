"""VPCs and what is in them: subnets, routes, gateways, endpoints, interfaces, security groups, DNS zones."""
