# Create the cluster's user. CLUSTER_USER, LOGIN_SHELL; NUMBER: uid, empty to choose one (master).

entry=$(getent passwd "$CLUSTER_USER") || entry=
number=$(printf '%s' "$entry" | cut -d: -f3)
home=/home/$CLUSTER_USER
shell=$(command -v "$LOGIN_SHELL") || fail "no shell $LOGIN_SHELL on this node (cluster_shell)"

is_free() { ! getent passwd "$1" >/dev/null && ! getent group "$1" >/dev/null; }

choose_number() {
    NUMBER=$(stat -c %u "$home" 2>/dev/null) || NUMBER=0 # keep the uid of a home on a volume
    [ "$NUMBER" -ge 1000 ] && is_free "$NUMBER" && return
    NUMBER=1001
    until is_free "$NUMBER"; do NUMBER=$((NUMBER + 1)); done
}

if [ -n "$number" ] && [ "$number" -ge 1000 ]; then
    [ -z "$NUMBER" ] || [ "$NUMBER" = "$number" ] \
        || fail "user $CLUSTER_USER has uid $number here and $NUMBER on the master;" \
            "use one image for all nodes, or another cluster_user"
    [ "$(printf '%s' "$entry" | cut -d: -f7)" = "$shell" ] || usermod -s "$shell" "$CLUSTER_USER"
    home=$(printf '%s' "$entry" | cut -d: -f6)
else
    [ -n "$NUMBER" ] || choose_number
    is_free "$NUMBER" || fail "uid $NUMBER of user $CLUSTER_USER belongs here to" \
        "$(getent passwd "$NUMBER" | cut -d: -f1); use one image for all nodes"
    if [ -n "$entry" ]; then # sgeadmin from Debian's Grid Engine, a system user without login
        old=$number
        groupmod -g "$NUMBER" "$(id -gn "$CLUSTER_USER")"
        usermod -u "$NUMBER" -g "$NUMBER" -d "$home" -s "$shell" "$CLUSTER_USER"
        find /var/lib/gridengine /var/spool/gridengine -xdev -uid "$old" \
            -exec chown -h root: {} + 2>/dev/null || :
    else
        getent group "$CLUSTER_USER" >/dev/null || groupadd -g "$NUMBER" "$CLUSTER_USER"
        useradd -M -u "$NUMBER" -g "$CLUSTER_USER" -d "$home" -s "$shell" "$CLUSTER_USER"
    fi
    number=$NUMBER
fi
tell number "$number"
tell home "$home"
