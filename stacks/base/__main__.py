"""The Pulumi program of a base. All of it is in corral.stacks.base."""

from corral.stacks.base import program

program()
