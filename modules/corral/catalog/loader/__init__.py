"""Read the catalog's data files; "did you mean" suggestions. `catalog.project_catalog` adds a project's rows."""
