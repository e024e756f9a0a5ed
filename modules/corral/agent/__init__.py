"""What runs on the cluster's machines, with the image's Python: the standard library, `corral.model`, a shipped boto3.

boto3 is imported only where AWS is called. The packages: `boot` and `host` start a machine; `autoscaler`,
`interruptions`, `config`, `shutdown`, `accounting` and `topology` run the cluster from its head; `health` checks nodes;
`commands` are the subcommands of `corral-agent`. `corral.plan` computes the plan.
"""
