"""`corral lint-env`: parse environment variables of NCCL, EFA and its plugin, then check them."""
