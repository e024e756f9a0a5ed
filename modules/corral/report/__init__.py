"""Views of plans, costs and inventories: pure functions from records to rich renderables, HTML and JSON documents.

One module per view; `usage` also computes what machines and jobs cost. Callers pass in forecasts and what AWS returned.
"""
