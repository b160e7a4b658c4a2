# Replace Grid Engine's packages by the files in FOLDER, and hold them against upgrades. DIGESTS:
# lines "SHA256  FILE"; with a wrong digest nothing is installed. NAMES: the packages. TOOLS.

trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
wrong=$(printf '%s\n' "$DIGESTS" | sha256sum --check --strict --quiet 2>&1) \
    || fail "wrong SHA-256 of Grid Engine's packages on this node; nothing was installed: $wrong"
# shellcheck disable=SC2046
set -- $(printf '%s\n' "$DIGESTS" | sed 's|^[0-9a-f]*  |./|')
# An image may hold its own packages. Others that need those are not removed: apt-get fails.
(apt_install --allow-downgrades --allow-change-held-packages --no-remove "$@")
# shellcheck disable=SC2086
apt-mark hold $NAMES >/dev/null
crash=$(spooldefaults_crash)
[ -z "$crash" ] || fail "spooldefaults of Debian 12 also ends with $crash on this node"
