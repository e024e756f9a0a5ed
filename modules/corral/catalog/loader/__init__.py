"""Read the catalog: its data files, a project's own additions, "did you mean" suggestions."""
