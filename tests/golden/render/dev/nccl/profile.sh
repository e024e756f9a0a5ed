# Managed by corral: do not edit. Your own settings: export them before, they are kept.
# NCCL reads /etc/nccl.conf by itself, but a container sees the environment only. Nothing for EFA is set here: libfabric
# finds it. Where fork() fails with ENOMEM (data loaders): export FI_EFA_USE_HUGE_PAGE=0
# `corral lint-env FILE` judges what else you set.
# shellcheck shell=sh
if [ -r /etc/nccl.conf ]; then
    while IFS='=' read -r name value; do
        case $name in
            NCCL_*) printenv "$name" >/dev/null || export "$name=$value" ;;
        esac
    done </etc/nccl.conf
    unset name value
fi
