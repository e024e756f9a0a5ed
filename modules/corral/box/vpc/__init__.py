"""A VPC on one machine: a network namespace with machines in it that are nested namespaces.

`probe` says whether this machine can have one, `network` starts it and asks it for machines, `keeper` is the process
that it is, `machine.sh` what becomes a machine's first process. Nothing here knows AWS: names, addresses, directories.
"""
