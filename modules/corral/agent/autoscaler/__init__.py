"""The autoscaler: what the head does about the difference between Slurm's nodes and EC2's instances.

`decide`, `launch_planner` and `capacity_block` are pure. `reconciler` executes what they decide, `control_loop` repeats
it; `requeue_release`, `grace_end` and `unexpected_reboots` follow jobs and nodes. slurmctld runs `resume_program`;
`request_queue` reads what it writes. The process is `agent.autoscaler_daemon`.
"""
