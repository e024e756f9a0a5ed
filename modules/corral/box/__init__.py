"""AWS in a box: one daemon per state directory answers the AWS APIs that the stacks and the agent use.

`control` starts, stops and asks a daemon and imports nothing heavy; `daemon` is the process itself, where moto lives.
The stand-in `aws` provider for Pulumi is in `provider`. Nothing here is AWS: docs/fidelity.md says what is alike.
"""
