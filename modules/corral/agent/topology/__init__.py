"""Where nodes sit in EC2's network: the order of ranks in a job, and Slurm's topology.conf."""
