"""Runs the Pulumi CLI: finds it, prepares its environment, supervises it, and adds a Python language host if needed."""
