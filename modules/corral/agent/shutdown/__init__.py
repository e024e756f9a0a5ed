"""The end of a cluster: its lifetime, the shutdown on its head, and what compute nodes do without their head."""
