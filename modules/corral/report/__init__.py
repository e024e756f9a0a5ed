"""Plans, bills and inventories for the eye: pure functions from records to rich renderables, and to JSON documents.

Nothing is computed or read here; one module a view.
"""
