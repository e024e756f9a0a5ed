#!/bin/sh
# Builds a root directory of a Debian suite with what heads and nodes of a cluster need.
# Run as root: sh build_root.sh SUITE MIRROR DIRECTORY
set -eu
suite=$1 mirror=$2 target=$3
unfinished=$target.unfinished

# One file system: anything still mounted in it is not touched.
clear_up() { rm -rf --one-file-system "$unfinished"; }
clear_up
trap clear_up EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "${target%/*}"

# The mounts of debootstrap end with its namespace, and debootstrap ends with this script, even after kill -9.
packages=slurmctld,slurmd,slurmdbd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin,munge,mariadb-server
packages=$packages,python3,iproute2,procps,hostname
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    debootstrap --variant=minbase --include="$packages" "$suite" "$unfinished" "$mirror"

# A head mounts its own hosts file over this one, when the root is read-only.
touch "$unfinished/etc/hosts"
rm -rf "$unfinished"/var/cache/apt/archives/*.deb "$unfinished"/var/lib/apt/lists/*
version=$(chroot "$unfinished" dpkg-query --show slurmctld | cut -f 2)
echo "${version%%-*}" >"$unfinished/etc/corral-slurm"
chmod 755 "$unfinished"
rm -rf --one-file-system "$target"
mv "$unfinished" "$target"
