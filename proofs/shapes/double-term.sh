# The first SIGTERM makes it start another daemon, the second one ends it.
. "${0%/*}/lib.sh"
again() {
    (setsid sleep "$token" >/dev/null 2>&1 &)
    trap - TERM
}
trap again TERM
sleep "$token" >/dev/null 2>&1 &
: >"$ready"
[ "$how" = exit ] && exit 0
while :; do
    sleep 0.05
done
