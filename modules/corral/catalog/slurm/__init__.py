"""Facts about Slurm by release: keys of slurm.conf and the values that slurmctld accepts."""
