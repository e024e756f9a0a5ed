"""Spot notices on a node: `spot` decides (pure), `node_watcher` is the daemon that follows it.

What the head does about expiring capacity blocks, reboots and requeued jobs is in `autoscaler`.
"""
