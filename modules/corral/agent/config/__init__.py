"""Apply a later `corral up` to a running head: fetch, compare, validate, install, restart what must restart."""
