# A child in a session of its own, which closed the log.
. "${0%/*}/lib.sh"
setsid sleep "$token" >/dev/null 2>&1 &
finish
