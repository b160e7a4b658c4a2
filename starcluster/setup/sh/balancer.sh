# The balancer on the master. ACTION: look (change nothing), libraries, activate, start, check or remove.
# FOLDER: its directory. RELEASE: its new directory in FOLDER. UNIT: systemd unit.
# LIBRARIES: Python modules and their packages, lines "MODULE PACKAGE".

missing_libraries() {
    printf '%s\n' "$LIBRARIES" | while read -r module package; do
        [ -n "$module" ] || continue
        python3 -I -c "import $module" 2>/dev/null || printf '%s\n' "$package"
    done
}

# Prints whether a user who is not root can connect to the metadata service.
REACHED='
import socket
for address in ("169.254.169.254", "fd00:ec2::254"):
    try:
        socket.create_connection((address, 80), 2).close()
        print("open")
        break
    except OSError:
        pass
else:
    print("closed")
'

case $ACTION in
look)
    tell python "$(python3 -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo none)"
    command -v systemctl >/dev/null && tell systemd yes || tell systemd no
    tell metadata "$(setpriv --reuid=65534 --regid=65534 --clear-groups python3 -I -c "$REACHED")"
    ;;
libraries)
    missing=$(missing_libraries)
    # shellcheck disable=SC2086
    [ -z "$missing" ] || apt_install $missing
    missing=$(missing_libraries)
    [ -z "$missing" ] || fail "python3 cannot import the libraries of:" $missing
    ;;
activate)
    ln -sfn "$RELEASE" "$FOLDER/current.new"
    mv -T "$FOLDER/current.new" "$FOLDER/current"
    ;;
start)
    cp "$FOLDER/current/unit" "/etc/systemd/system/.$UNIT.new"
    chmod 644 "/etc/systemd/system/.$UNIT.new"
    mv "/etc/systemd/system/.$UNIT.new" "/etc/systemd/system/$UNIT"
    systemctl daemon-reload
    systemctl enable --quiet "$UNIT"
    systemctl restart "$UNIT"
    for old in "$FOLDER"/*; do
        case ${old##*/} in "$RELEASE" | current) ;; *) rm -rf "$old" ;; esac
    done
    ;;
check)
    tell state "$(systemctl is-active "$UNIT" 2>/dev/null || :)"
    [ ! -r "$FOLDER/current/installed" ] || tell installed "$(cat "$FOLDER/current/installed")"
    ;;
remove)
    if [ -e "/etc/systemd/system/$UNIT" ]; then
        systemctl disable --quiet --now "$UNIT"
        rm -f "/etc/systemd/system/$UNIT"
        systemctl daemon-reload
        tell removed "$UNIT"
    fi
    rm -rf "$FOLDER"
    rm -f /var/lib/starcluster/balancer-turn
    ;;
esac
