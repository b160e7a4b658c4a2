# Enable (ACTION=-e) or disable (ACTION=-d) the queue instances of HOSTS.
sge_environment
group=" $(qconf -shgrp_resolved @allhosts 2>/dev/null) "
for name in $HOSTS; do
    case $group in *" $name "*) ;; *) [ "$ACTION" = -e ] || continue ;; esac # not registered
    words=$(qmod "$ACTION" "all.q@$name" 2>&1) || case $words in
        *already*) ;;
        *) fail "qmod $ACTION all.q@$name: $words" ;;
    esac
done
