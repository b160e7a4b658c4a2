# Wait until all HOSTS report to the master; print those that do not within SECONDS_LEFT seconds.
sge_environment

silent() { # print the HOSTS that report no load
    up=$(qhost 2>/dev/null | awk 'NR > 3 && $4 != "-" { print $1 }') || up=
    for name in $HOSTS; do
        printf '%s\n' "$up" | grep -qxF "$name" || echo "$name"
    done
}

all_report() { [ -z "$(silent)" ]; }

until_true "$SECONDS_LEFT" all_report || for name in $(silent); do tell silent "$name"; done
