"""Forecasts from a plan, before anything exists: cost, quotas, storage speed, interruptions, training runs.

Pure: callers pass in prices. `report` shows forecasts.
"""
