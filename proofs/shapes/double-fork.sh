# A daemon by the book: its own session, and a parent that is gone.
. "${0%/*}/lib.sh"
setsid sh -c 'sleep "$1" & exit' sh "$token" >/dev/null 2>&1 </dev/null
finish
