#!/bin/bash
# Make a system that says it is Ubuntu 22.04, and whose mirror has the packages of Ubuntu: an older
# libhwloc15, and a newer Grid Engine whose spooldefaults and sge_qmaster crash. NAME DIRECTORY DEBIAN_12
set -eu
root=$2 debian=$3 version=8.1.9+dfsg-11ubuntu2
cp -a "$debian/." "$root"
cat > "$root/usr/lib/os-release" << 'END'
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
END
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root/srv/mirror"
for file in gridengine-*.deb; do
  part=${file%%_*}
  dpkg-deb -R "$file" "$work/$part"
  sed -i -E -e "s/^Version: .*/Version: $version/" -e "s/\(= 8\.1\.9[^)]*\)/(= $version)/g" \
    -e 's/libhwloc15 \(>= 2\.7\.1\)/libhwloc15/' \
    "$work/$part/DEBIAN/control"
  for program in spooldefaults.bin sge_qmaster; do
    broken=$work/$part/usr/lib/gridengine/$program
    [ ! -e "$broken" ] || printf '#!/bin/sh\nkill -SEGV $$\n' > "$broken"
  done
  rm "$file"
  dpkg-deb --root-owner-group -Znone -b "$work/$part" "${part}_${version}_${file##*_}"
done
dpkg-deb -R libhwloc15_*.deb "$work/hwloc"
sed -i -E 's/^Version: .*/Version: 2.7.0-2ubuntu1/' "$work/hwloc/DEBIAN/control"
rm libhwloc15_*.deb
dpkg-deb --root-owner-group -Znone -b "$work/hwloc" .
"${0%/*}/root-index.sh" .
