#!/bin/bash
# First process of a node: ROOT NAME WORK BIND... Makes ROOT its file system, then reaps orphans.
set -eu
root=$1 name=$2 work=$3
shift 3
mount --rbind "$root" "$root"
mount --make-rprivate "$root"
mkdir -p "$root/.testbed"
mount --rbind "$work" "$root/.testbed" # for the stand-in for NFS
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/lock"
for path in "$@"; do mount --bind "$path" "$root$path"; done
hostname "$name"
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l .old
touch /run/up
while :; do sleep 3600 & wait $!; done
