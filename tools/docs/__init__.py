"""Generators of documentation pages. `make docs` runs them; tests check that the pages are up to date."""
