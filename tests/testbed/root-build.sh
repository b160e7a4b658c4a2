#!/bin/bash
# Make a fresh Debian: SUITE DIRECTORY MIRROR STAND_INS STOCK PACKAGE... Runs in its own mount
# namespace, so no mount is left. /srv/mirror has PACKAGES and what they need.
set -eu
suite=$1 root=$2 mirror=$3 stand_ins=$4 stock=$5
shift 5
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
chmod 755 "$root"
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/doc/*' \
  'path-exclude=/usr/share/locale/*' > "$root/etc/dpkg/dpkg.cfg.d/small"
debootstrap --variant=minbase --include="$stock" "$suite" "$root" "$mirror"
rm -f "$root"/etc/ssh/ssh_host_* "$root"/var/cache/apt/archives/*.deb

# The packages, for nodes without network
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/srv/mirror/partial"
chroot "$root" apt-get -q update
chroot "$root" apt-get -q -y -o Dir::Cache::Archives=/srv/mirror --no-install-recommends \
  --download-only install "$@"
rmdir "$root/srv/mirror/partial"
rm -f "$root/srv/mirror/lock" "$root/etc/resolv.conf"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin
"${0%/*}/root-index.sh" "$root/srv/mirror"
echo 'deb [trusted=yes] file:/srv/mirror ./' > "$root/etc/apt/sources.list"
rm -f "$root"/etc/apt/sources.list.d/*

# This kernel has no NFS: after each installation, stand-ins replace what needs it.
mkdir "$root/srv/stand_ins"
install -m 755 "$stand_ins"/{mount.nfs,nfs-kernel-server} "$root/srv/stand_ins"
cat > "$root/srv/stand_ins/place" << 'END'
#!/bin/sh
[ ! -e /usr/sbin/mount.nfs ] || install /srv/stand_ins/mount.nfs /usr/sbin
[ ! -e /usr/sbin/exportfs ] || install /srv/stand_ins/nfs-kernel-server /etc/init.d
END
chmod 755 "$root/srv/stand_ins/place"
echo 'post-invoke=/srv/stand_ins/place' >> "$root/etc/dpkg/dpkg.cfg.d/small"
