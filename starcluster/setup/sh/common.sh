# Functions of all setup scripts. A script reports a fact to the caller as a line "fact NAME VALUE".
set -eu
PATH=/usr/lib/gridengine:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

tell() { printf 'fact %s %s\n' "$1" "$2"; }

sge_environment() {
    SGE_ROOT=/var/lib/gridengine SGE_CELL=default
    SGE_ARCH=$(/usr/share/gridengine/util/arch)
    export SGE_ROOT SGE_CELL SGE_ARCH
}

# Grid Engine runs as root, so the cluster's user manages nothing, also if it is sgeadmin. Daemons
# that an earlier version started keep their user.
admin_user() {
    if running sge_qmaster || running sge_execd; then
        awk '$1 == "admin_user" { print $2 }' "$SGE_ROOT/$SGE_CELL/common/bootstrap" 2>/dev/null
    else
        echo none
    fi
}

until_true() { # SECONDS COMMAND...
    tries=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.1
    done
}

running() { pgrep -x "$1" >/dev/null; }

start_daemon() { # PROGRAM SERVICE
    running "$1" && return
    if [ -d /run/systemd/system ]; then
        systemctl start "$2" && until_true 3 running "$1" && return
    fi
    "$1" || fail "cannot start $1"
}

spooldefaults_crash() { # print the signal that ends Grid Engine's spooldefaults, if one does
    python3 -c '
import sys
sys.path.insert(0, sys.argv[1])
from sge_jobs.node.spooldefaults import spooldefaults_crash
print(spooldefaults_crash())' "$TOOLS" || fail "cannot test Grid Engine's spooldefaults"
}
