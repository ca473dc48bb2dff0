# Kills the steps of a planrun that died without cleanup (kill -9, no memory).
#
# It reads a pipe whose other end only that planrun holds: a line means a normal end; the pipe's end without a line
# means that planrun is dead.
# $1: the run, as its processes have it in their environment; $2: how their marks begin, empty without marks;
# $3: the program that runs its containers, empty when it has none.
run=$1
mark=$2
engine=$3

# A signal that ends planrun may go to its whole group, session or tree; none may end the guardian first.
trap '' HUP INT TERM
cd / || exit
exec 3<&0

suspects() {
    if [ "$mark" ]; then
        grep -Els "^Max file locks +$mark[0-9]{6} " /proc/[0-9]*/limits
    else
        grep -lsxz "PLANRUN_RUN=$run" /proc/[0-9]*/environ
    fi
}

# Zombies do not count: their parent may never reap them.
living() {
    statuses=
    for path in $(suspects); do
        statuses="$statuses ${path%/*}/status"
    done
    # shellcheck disable=SC2086 # they are words
    [ "$statuses" ] && for path in $(grep -Els '^State:.[^XZ]' $statuses); do
        path=${path%/status}
        echo "${path#/proc/}"
    done
}

# Without /proc: the groups of the processes that have the run in their environment.
families() {
    for group in $(ps -axEww -o pgid= -o command= | sed -n "s/^ *\([0-9]*\) .* PLANRUN_RUN=$run.*/\1/p"); do
        echo "-$group"
    done
}

# A container survives its client, and the engine may still create one that a killed client requested.
boxes() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
        # shellcheck disable=SC2046 # they are words
        set -- $("$engine" ps -aq --filter "label=planrun.run=$run")
        [ $# = 0 ] || "$engine" rm -f "$@"
        sleep 0.2
    done
}

(
    read -r word <&3
    [ "$word" ] && exit
    if [ "$engine" ]; then boxes & fi
    tries=100
    while [ $tries -gt 0 ]; do
        if [ -r /proc/self/status ]; then targets=$(living); else targets=$(families); fi
        [ "$targets" ] || exit
        # shellcheck disable=SC2086 # they are words
        kill -KILL $targets 2>/dev/null
        tries=$((tries - 1))
        [ $tries -lt 90 ] && sleep 0.02
    done
) &
