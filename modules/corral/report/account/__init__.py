"""Views of an account: environment status, jobs, preflight findings, orphaned resources."""
