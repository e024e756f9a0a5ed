"""Interruptions of machines under running jobs: spot notices, expiring capacity blocks, unexpected reboots.

`spot` and `capacity_block` are pure. `node_watcher` is the daemon of each node that follows `spot`; on the head the
autoscaler follows the others.
"""
