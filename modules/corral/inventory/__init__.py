"""What an account really holds: what is up, what was left behind, what is kept.

Reading is thin and gives frozen records; deciding what they mean is pure; deleting takes finished records. Which stacks
are alive is passed in: Pulumi's state is not read here.
"""
