"""What an account holds: running environments, orphaned resources, and retained data.

Readers are thin and return frozen records. The functions that classify them are pure. Deletion takes finished records.
Only `live_stacks` reads Pulumi's state files.
"""
