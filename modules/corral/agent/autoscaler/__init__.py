"""The autoscaler: the one process on the head that reconciles Slurm's nodes with EC2's instances.

`decide`, `launch_planner`, `launch_errors` and `node_events` are pure. `reconciler` executes what they decide,
`control_loop` repeats it, `daemon` is the process. slurmctld runs `resume_program`; `request_queue` reads what it
writes. Interruptions of single nodes are in the package `interruptions`.
"""
