"""A VPC on one host: a network namespace, with machines in nested namespaces.

`capabilities` tests what the host supports, `virtual_network` is the daemon's client of a VPC, `namespace_init` is the
VPC's process, and `machine.sh` sets up a machine. Nothing here depends on AWS: only names, addresses and directories.
"""
