# Let jobs run on HOSTS (ACTION=-e), or none start there any more (ACTION=-d).
sge_environment
for name in $HOSTS; do
    words=$(qmod "$ACTION" "all.q@$name" 2>&1) || case $words in
        *already*) ;;
        *) fail "qmod $ACTION all.q@$name: $words" ;;
    esac
done
