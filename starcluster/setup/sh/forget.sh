# Remove HOSTS from Grid Engine; other nodes rerun their jobs.
sge_environment

gone() { # fails while its jobs are still leaving
    qconf -de "$1"
    ! qconf -sel | grep -qxF "$1"
}

known=" $(qconf -sel 2>/dev/null | tr '\n' ' ') "
for name in $HOSTS; do
    case $known in *" $name "*) ;; *) continue ;; esac # the master caches names it cannot resolve
    qmod -d "all.q@$name" >/dev/null 2>&1 || :
    qmod -rq "all.q@$name" >/dev/null 2>&1 || :
    qconf -purge queue slots "all.q@$name" >/dev/null 2>&1 || :
    qconf -dattr hostgroup hostlist "$name" @allhosts >/dev/null 2>&1 || :
    qconf -ke "$name" >/dev/null 2>&1 || :
    until_true 15 gone "$name" || fail "cannot remove $name from Grid Engine: $(qconf -de "$name" 2>&1)"
    for option in -dconf -ds -dh; do qconf $option "$name" >/dev/null 2>&1 || :; done
done
