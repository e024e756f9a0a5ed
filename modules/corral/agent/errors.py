"""What can go wrong on a machine, as one tree.

AgentError > BootError, DumpError, Ec2Error, HostError, IdentityError, LaunchError, LifeError, MetadataError,
NoCapacity, SecretError, SlurmError, StoreError.
"""


class AgentError(Exception):
    """Something that a person has to know; the text is one sentence."""
