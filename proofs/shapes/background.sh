# Two background children in the group of the main process.
. "${0%/*}/lib.sh"
sleep "$token" >/dev/null 2>&1 &
sleep "$token" >/dev/null 2>&1 &
finish
