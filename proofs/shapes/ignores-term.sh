# Neither the main process nor its child hears what asks them to end.
. "${0%/*}/lib.sh"
trap '' TERM INT HUP
sleep "$token" >/dev/null 2>&1 &
finish
