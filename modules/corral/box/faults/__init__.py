"""Faults as data: failures as they happen on AWS, on request.

`records` defines the faults, `matching` decides which one applies (pure), `store` saves them, `api_faults` applies them
to calls. `fault_targets` validates names, `parse` reads a command's parameters. `fault_api` serves them.
"""
