"""Plain frozen records that several packages share and that machines read as JSON.

Imports the standard library only: the agent uses this package on the image's own Python. Records contain no logic:
`plan` computes them; `render`, `components` and the agent read them.
"""
