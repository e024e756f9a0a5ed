#!/bin/sh
# The head of a cluster, in namespaces of its own: started by corral.box.slurm, which explains the arguments.
# Prints "ready" when slurmctld answers, restarts it for every line that it reads, and lives until its standard input
# ends; then everything in the namespaces dies with it.
set -eu
root=$1 host=$2 address=$3 user=$4

ip link set lo up
ip address add "$address/32" dev lo
hostname "$host"

# /mnt is short, whatever the directory is called, and can be reached by the daemons' users.
mount --bind "$root" /mnt
mount -t tmpfs tmpfs /run
mkdir -p /run/munge
for place in etc/slurm etc/hosts etc/nsswitch.conf var opt; do
    mount --bind "/mnt/$place" "/$place"
done

set --
if [ -n "$user" ]; then
    # slurmctld drops its groups where it is root, which one user alone cannot: it runs as that user, one namespace deeper.
    mount --bind /mnt/etc/passwd /etc/passwd
    set -- unshare --user --map-user="$user" --map-group="$user" --
fi

# In the namespace of one user the root directory is nobody's, which munged takes for insecure.
"$@" munged ${user:+--force} --key-file=/mnt/munge.key --num-threads=2
while
    "$@" slurmctld -D >>/mnt/slurmctld.out 2>&1 &
    slurmctld=$!
    until "$@" scontrol ping 2>/dev/null | grep -q UP; do
        kill -0 "$slurmctld" || exit 1
        sleep 0.05
    done
    echo ready
    read -r _
do
    kill "$slurmctld" && wait "$slurmctld"
done
kill "$slurmctld" && wait "$slurmctld"
