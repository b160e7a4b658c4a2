# Wait until each of HOSTS reports to the master; name those that do not within SECONDS.
sge_environment

silent() { # the names of HOSTS that report no load
    up=$(qhost 2>/dev/null | awk 'NR > 3 && $4 != "-" { print $1 }') || up=
    for name in $HOSTS; do
        printf '%s\n' "$up" | grep -qxF "$name" || echo "$name"
    done
}

all_report() { [ -z "$(silent)" ]; }

until_true "$SECONDS_LEFT" all_report || for name in $(silent); do tell silent "$name"; done
