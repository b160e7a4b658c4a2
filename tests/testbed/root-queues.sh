#!/bin/bash
# Make a Debian 13 with Slurm 24, and with HTCondor, whose first version with condor_submit -json is
# there: NAME DIRECTORY MIRROR STAND_INS PACKAGE... Runs in its own mount namespace, so no mount is left.
set -eu
root=$2 mirror=$3 stand_ins=$4
shift 4
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
chmod 755 "$root"
mkdir -p "$root/etc/dpkg/dpkg.cfg.d" "$root/usr/sbin"
printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/doc/*' \
  'path-exclude=/usr/share/locale/*' > "$root/etc/dpkg/dpkg.cfg.d/small"
debootstrap --variant=minbase trixie "$root" "$mirror"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d" # start no daemon
chmod 755 "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
chroot "$root" apt-get -q update
chroot "$root" apt-get -q -y --no-install-recommends install "$@"
umount "$root/proc"
rm -f "$root/etc/resolv.conf" "$root"/var/cache/apt/archives/*.deb "$root"/var/cache/apt/*.bin
rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/condor/config.d/*
rm -f "$root"/etc/ssh/ssh_host_* # each node has its own
# This kernel has no NFS.
install -m 755 "$stand_ins/mount.nfs" "$root/usr/sbin"
install -m 755 "$stand_ins/nfs-kernel-server" "$root/etc/init.d"
