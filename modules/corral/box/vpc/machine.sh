#!/bin/sh
# The first process of a machine, in its own namespaces: it enters the root directory, sets the address and becomes the
# machine's init. corral.box.vpc.namespace_machines starts it in the directory of machine_root.sh, and adds the network
# card between "here" and "go".
#
#   machine.sh HOST_NAME[.DOMAIN] ADDRESS/PREFIX ROUTER RESOLVER -- INIT...
#
# Until pivot_root the programs are the host's.
set -eu
host=$1 address=$2 router=$3 resolver=$4
shift 5

# The mounts of a more privileged namespace are locked: none of them may become the root directory, a copy of all may.
mount --no-canonicalize --rbind . /tmp
cd /tmp
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys || mount --rbind /sys sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup # slurmd needs a file system there with any plugin
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
domain=${host#"${host%%.*}"} # from the first dot
host=${host%%.*}
hostname "$host"
echo "$host" >etc/hostname
printf '127.0.0.1 localhost\n%s %s\n' "${address%/*}" "$host" >etc/hosts
echo "nameserver $resolver" >etc/resolv.conf
if [ "$domain" ]; then echo "search ${domain#.}" >>etc/resolv.conf; fi

echo here
read -r _ # go: eth0 exists
ip link set lo up
ip address add "$address" dev eth0
ip link set eth0 up
ip route add default via "$router"

pivot_root . old
cd /
umount -l old
rmdir old
echo up
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@" </dev/null >/dev/console 2>&1
