"""GPU clusters on AWS with Pulumi and Slurm; the packages and their order are in docs/design.md."""

__version__ = "0.1.0"
