# A daemon without parent, session, descriptors and environment in common with its step.
. "${0%/*}/lib.sh"
env -i setsid sh -c 'exec </dev/null >&- 2>&-; cd /; sleep "$1" & exit' sh "$token"
finish
