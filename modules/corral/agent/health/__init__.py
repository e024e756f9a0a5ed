"""Whether a machine is fit for jobs: parsers of what tools print, a judge, and the thin programs around them.

    tools --readings.py--> text --gpus, nvlink, xids, dcgm, system--> records --judge.py--> findings --check.py--> reason

Everything but `readings` and `check` is pure.
"""
