"""The end of a cluster: its lifetime, the shutdown on its head, and compute nodes that terminate themselves."""
