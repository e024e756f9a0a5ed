"""The Pulumi program of a cluster. All of it is in corral.stacks.cluster_program."""

from corral.stacks.cluster_program import program

program()
