"""The subcommands of `corral-agent`: options and exit codes.

The work is in the other packages, except short calls of Slurm.
"""
