# Wait until each of HOSTS reports to the master; name those that do not within SECONDS.
sge_environment

silent() { # the names of HOSTS that report no load
    qhost 2>/dev/null | awk 'NR > 3 && $4 != "-" { print $1 }' >/tmp/starcluster-up || :
    for name in $HOSTS; do
        grep -qxF "$name" /tmp/starcluster-up || echo "$name"
    done
}

all_report() { [ -z "$(silent)" ]; }

until_true "$SECONDS_LEFT" all_report || for name in $(silent); do tell silent "$name"; done
