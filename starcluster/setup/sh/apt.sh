# Install packages with apt-get. Daemons do not start, and temporary errors of mirrors are retried.

apt_install() { # ARGUMENT...: of apt-get install
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a LC_ALL=C
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then # the daemons must not start before they are configured
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
    fi
    # Keep configuration files that the image changed: dpkg would ask.
    apt="apt-get -q -y -o DPkg::Lock::Timeout=300"
    apt="$apt -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold"
    log=$(mktemp)
    end=0
    retry_transient install_or_update "$@" || end=$?
    words=$(tail -n 5 "$log")
    rm -f "$log"
    [ $end -eq 0 ] || fail "apt-get: $words"
}

install_or_update() {
    $apt install --no-install-recommends "$@" \
        || { $apt update; $apt install --no-install-recommends "$@"; }
}

retry_transient() { # COMMAND...: retry while $log has a temporary error
    # At the first boot other programs update the package lists; apt-get does not wait for that lock.
    passes='Could not get lock|Failed to fetch|Temporary failure|Could not resolve'
    tries=12
    until "$@" >"$log" 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] && grep -qE "$passes" "$log" || return 1
        sleep "${PAUSE_S:-15}"
    done
}
