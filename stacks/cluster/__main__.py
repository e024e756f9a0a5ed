"""The Pulumi program of a cluster. All of it is in corral.stacks.cluster."""

from corral.stacks.cluster import program

program()
