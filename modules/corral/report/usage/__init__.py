"""What a cluster used over its history: instance time, interruptions, jobs, cost.

Computed from the head's events and the job runs, with the catalog's prices. Start at `usage_summary.compute_usage`.
"""
