"""Pure planning: a spec and the catalog in, a frozen plan out.

Nothing here reads the network, the clock, or a file other than the catalog's.
"""
