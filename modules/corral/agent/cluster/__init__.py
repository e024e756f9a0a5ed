"""The cluster as its head knows it: records of nodes, instances and launches, the saved state, and the reads from AWS.

`models` and `state` are the records; `launch_errors` and `node_events` classify and compare them; `ec2_client`,
`boto_parsing` and `partition_state` query EC2 and Slurm. What follows from them is decided in `autoscaler`.
"""
