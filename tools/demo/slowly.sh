#!/bin/sh
# Runs Python. The first run of a job sleeps for two seconds after each step, so that the spot notice arrives before the
# last one, however busy this machine is. The run after the notice does not.
if [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ]; then
    set -- "$@" --nap 2
fi
exec python3 "$@"
