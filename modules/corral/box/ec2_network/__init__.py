"""EC2 networking in the box: VPCs, subnets, zones, and the network interfaces of instances."""
