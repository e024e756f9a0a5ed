"""The box, a local AWS emulator: one daemon per state directory answers the AWS APIs that the stacks and the agent use.

`client` starts, stops and queries a daemon; `control` injects faults and sets quotas. Neither imports anything heavy.
`__main__` is the process, which runs moto behind the application of `daemon`. `provider` is the stand-in for Pulumi's
`aws` provider. docs/fidelity.md lists the differences from AWS.
"""
