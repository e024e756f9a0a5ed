"""The HTML pages of a plan, a preflight and a cluster's history, each composed of sections and diagrams."""
