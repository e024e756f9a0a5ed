"""EC2 capacity in the box: reservations, Capacity Blocks, spot, quotas, placement groups and type offerings."""
