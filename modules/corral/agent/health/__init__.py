"""Check whether a machine is fit for jobs: query its tools, parse their output, evaluate it, drain a sick node.

    tools --probes--> text --gpus, nvlink, xids, dcgm, system--> records --evaluate--> findings --check--> reason

Everything but `probes` and `check` is pure.
"""
