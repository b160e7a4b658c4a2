#!/bin/bash
# Make a system that says it is Ubuntu 24.04, and whose mirror has the Grid Engine of Ubuntu: newer
# than Debian 12's, and spooldefaults and sge_qmaster crash. NAME DIRECTORY DEBIAN_12
set -eu
root=$2 debian=$3 version=8.1.9+dfsg-11ubuntu2
cp -a "$debian/." "$root"
cat > "$root/usr/lib/os-release" << 'END'
PRETTY_NAME="Ubuntu 24.04.3 LTS"
NAME="Ubuntu"
VERSION_ID="24.04"
VERSION="24.04.3 LTS (Noble Numbat)"
VERSION_CODENAME=noble
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=noble
END
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root/srv/mirror"
for file in gridengine-*.deb; do
  part=${file%%_*}
  dpkg-deb -R "$file" "$work/$part"
  sed -i -E -e "s/^Version: .*/Version: $version/" -e "s/\(= 8\.1\.9[^)]*\)/(= $version)/g" \
    "$work/$part/DEBIAN/control"
  for program in spooldefaults.bin sge_qmaster; do
    broken=$work/$part/usr/lib/gridengine/$program
    [ ! -e "$broken" ] || printf '#!/bin/sh\nkill -SEGV $$\n' > "$broken"
  done
  rm "$file"
  dpkg-deb --root-owner-group -Znone -b "$work/$part" "${part}_${version}_${file##*_}"
done
"${0%/*}/root-index.sh" .
