"""Metrics for Prometheus: of the head, served on loopback, and of each node, served to the head.

Of the head: `head_metrics` (pure) computes them from a `reading`, `exporter` reads and `endpoint` serves. Of a node:
`node_metrics` (pure) computes, `node_exporter` reads and serves; `node_targets` lists the nodes for Prometheus.
`text_format` (pure) writes both. Nothing here changes the cluster.
"""
