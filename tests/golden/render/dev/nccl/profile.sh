# Managed by corral: do not edit. Variables that you export before keep their values.
# NCCL reads /etc/nccl.conf, but a container sees only the environment. EFA requires no variables: libfabric detects it.
# If fork() fails with ENOMEM in data loaders, export FI_EFA_USE_HUGE_PAGE=0. Check other variables with
# `corral lint-env FILE`.
# shellcheck shell=sh
if [ -r /etc/nccl.conf ]; then
    while IFS='=' read -r name value; do
        case $name in
            NCCL_*) printenv "$name" >/dev/null || export "$name=$value" ;;
        esac
    done </etc/nccl.conf
    unset name value
fi
