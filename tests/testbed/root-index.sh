#!/bin/bash
# Write the index of a directory of packages, which makes it a mirror for apt-get: DIRECTORY
set -eu
cd "$1"
for file in *.deb; do
  [ "$file" = "${file/_[0-9]*%3a/_}" ] || mv "$file" "${file/_[0-9]*%3a/_}" # no epoch in file names
done
for file in *.deb; do
  dpkg-deb -f "$file"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' \
    "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d ' ' -f 1)"
done > Packages
