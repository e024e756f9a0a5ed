"""How long things may take, where what is rendered and the agent must agree. Seconds."""

# slurm.conf's ResumeTimeout: from a launch to the node's registration. AWS ParallelCluster allows 2100 s, slurm-gcp
# 1200 s for its GPU machines.
RESUME_TIMEOUT_S = 1200
