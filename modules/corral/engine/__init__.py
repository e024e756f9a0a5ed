"""Bringing stacks up and down with the real Pulumi engine: which engine, in which surroundings, and what became of it.

`up` and `down` are the two entrances. The programs that the engine runs are `corral.stacks`; nothing here knows a
resource type, except `lookups`, which finds again what an interrupted engine made.
"""
