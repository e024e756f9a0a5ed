"""Boot a launched instance as a head, a login node or a compute node.

Packages, files, disks, the munge key, daemons: `sequence` runs the steps in order; `head` adds those of a head, and
`login` those of a login node. What differs between EC2 and the box is in `host`.
"""
