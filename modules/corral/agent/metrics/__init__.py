"""The head's metrics for Prometheus: read from what the autoscaler knows, computed, and served on loopback.

`head_metrics` (pure) computes them from a `reading`, `text_format` (pure) writes them, `exporter` reads and `endpoint`
serves. Nothing here changes the cluster.
"""
