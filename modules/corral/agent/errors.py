"""The base of the agent's exceptions. Each module defines its own: BootError, Ec2Error, HostError, SlurmError, ..."""


class AgentError(Exception):
    """A failure to report to a person; the text is one sentence."""
