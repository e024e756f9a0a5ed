"""The forecast of a declared run as a whole: training, checkpoints, interruptions, cost and power together.

`training`, `fabric`, `cost` and the modules of `forecast` model the parts.
"""
