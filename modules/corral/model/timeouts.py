"""Times in seconds on which the agent, rendered files and commands must agree."""

# How long before its expiry a cluster warns its users.
EXPIRY_WARNING_S = 900.0

# slurm.conf's ResumeTimeout: from a launch to the node's registration. AWS ParallelCluster allows 2100 s, slurm-gcp
# 1200 s for its GPU machines.
RESUME_TIMEOUT_S = 1200
