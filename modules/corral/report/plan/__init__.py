"""Views of a plan: terminal, page, JSON, cost, quotas, rendered files."""
