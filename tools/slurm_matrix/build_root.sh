#!/bin/sh
# Makes a root directory of a Debian suite, with all that heads and nodes of a cluster need. Run as root: sh build_root.sh SUITE MIRROR DIRECTORY
set -eu
suite=$1 mirror=$2 target=$3
unfinished=$target.unfinished

# One file system: if anything is still mounted in it, that is not touched.
clear_up() { rm -rf --one-file-system "$unfinished"; }
clear_up
trap clear_up EXIT
trap 'exit 130' INT TERM HUP
mkdir -p "${target%/*}"

# What debootstrap mounts ends with its namespace, and debootstrap with this script, however they end.
packages=slurmctld,slurmd,slurmdbd,slurm-client,slurm-wlm-basic-plugins,slurm-wlm-mysql-plugin,munge,mariadb-server
packages=$packages,python3,iproute2,procps,hostname
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc \
    debootstrap --variant=minbase --include="$packages" "$suite" "$unfinished" "$mirror"

# A head's own hosts file is put over this one, and the root is read-only by then.
touch "$unfinished/etc/hosts"
rm -rf "$unfinished"/var/cache/apt/archives/*.deb "$unfinished"/var/lib/apt/lists/*
version=$(chroot "$unfinished" dpkg-query --show slurmctld | cut -f 2)
echo "${version%%-*}" >"$unfinished/etc/corral-slurm"
chmod 755 "$unfinished"
rm -rf --one-file-system "$target"
mv "$unfinished" "$target"
