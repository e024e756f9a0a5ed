"""How long things may take, where the agent and what is rendered, or a command, must agree. Seconds."""

# How long before its end people are told that a cluster is about to end.
WARN_AHEAD_S = 900.0

# slurm.conf's ResumeTimeout: from a launch to the node's registration. AWS ParallelCluster allows 2100 s, slurm-gcp
# 1200 s for its GPU machines.
RESUME_TIMEOUT_S = 1200
