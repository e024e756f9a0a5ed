"""Boot a launched instance as a head or a compute node: packages, files, disks, the munge key, daemons.

`sequence` runs the steps in order; `head` adds those of a head. What differs between EC2 and the box is in `host`.
"""
