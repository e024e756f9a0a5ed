"""State backends: checks of buckets and directories, free space, and the locks of stacks."""
