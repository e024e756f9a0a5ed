"""Views of a plan: terminal, JSON, cost, quotas, rendered files."""
