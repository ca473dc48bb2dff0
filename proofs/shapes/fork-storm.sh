# Forty children that daemonise, each with two processes, and nobody waits for them.
. "${0%/*}/lib.sh"
count=40
while [ $count -gt 0 ]; do
    (setsid sh -c 'sleep "$1" & sleep "$1" & exit' sh "$token" >/dev/null 2>&1 </dev/null &)
    count=$((count - 1))
done
finish
