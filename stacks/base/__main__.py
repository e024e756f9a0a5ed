"""The Pulumi program of a base. All of it is in corral.stacks.base_program."""

from corral.stacks.base_program import program

program()
