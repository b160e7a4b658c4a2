# Take HOSTS out of Grid Engine: their jobs run again elsewhere.
sge_environment

gone() { # its jobs may take a moment to leave
    qconf -de "$1"
    ! qconf -sel | grep -qxF "$1"
}

known=" $(qconf -sel 2>/dev/null | tr '\n' ' ') "
for name in $HOSTS; do
    case $known in *" $name "*) ;; *) continue ;; esac # the master remembers what it cannot resolve
    qmod -d "all.q@$name" >/dev/null 2>&1 || :
    qmod -rq "all.q@$name" >/dev/null 2>&1 || :
    qconf -purge queue slots "all.q@$name" >/dev/null 2>&1 || :
    qconf -dattr hostgroup hostlist "$name" @allhosts >/dev/null 2>&1 || :
    qconf -ke "$name" >/dev/null 2>&1 || :
    until_true 15 gone "$name" || fail "Grid Engine keeps $name: $(qconf -de "$name" 2>&1)"
    for option in -dconf -ds -dh; do qconf $option "$name" >/dev/null 2>&1 || :; done
done
