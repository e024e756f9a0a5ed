"""What the head finds out about one job, for `corral diagnose`.

`slurm_record` reads Slurm. A job's directory and its output are its user's: `user_reader` has them read by a process of
that user, and takes its answer as that user's word. In that process, `step_files` reads, `step_summary` and
`output_lines` decide what is passed on. All sizes are bounded.
"""
