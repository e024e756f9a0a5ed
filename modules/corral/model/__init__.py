"""Plain frozen records that cross rooms and travel to the machines as JSON.

Nothing but the standard library is imported here: the agent, which runs on the image's own Python, uses this package
as it is. Records decide nothing; `plan` computes them, `render`, `components` and the agent read them.
"""
