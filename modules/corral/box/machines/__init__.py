"""Machines for the instances of the box: which should run, how they boot, and their metadata service.

`box.vpc` starts the namespaces that they run in; it is independent of AWS.
"""
