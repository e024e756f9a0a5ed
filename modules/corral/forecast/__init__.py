"""What a plan will lead to, computed before anything exists: for now, what it costs. Pure; prices are passed in."""
