"""Can this account start this plan now? Each check fetches facts, read-only, and evaluates them, pure."""
