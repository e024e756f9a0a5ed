"""Whether a machine is fit for jobs: parsers of what tools print, a judge, and the thin programs around them.

    tools --readings--> text --gpus, nvlink, xids, dcgm, system--> records --judge--> findings --check--> reason

Everything but `readings` and `check` is pure.
"""
