"""Recovers stacks whose engine was killed: finds created resources, completes half-made ones."""
