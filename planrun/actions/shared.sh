# Runs one command in a container that several steps share; the first of them starts the container.
#
# $1: the engine; $2: the name of the container; $3: the variable by which processes of this attempt are found there;
# $4: a folder that the caller owns; $5: the workspace if the container may leave files in it that the caller does not
# own, else empty; $6: the image; $7: how many words follow for `run`; after them come those for `exec`. With the word
# `end` as $7 nothing is run: what is left of the attempt is killed.
engine=$1 name=$2 mark=$3 own=$4 workspace=$5 image=$6 count=$7
shift 7

status() {
    "$engine" container inspect --format '{{.State.Status}}' "$name" 2>/dev/null
}

# Only the image may take long to arrive, and what the engine says of it belongs in the log.
begin() {
    "$engine" image inspect "$image" >/dev/null 2>&1 || "$engine" pull "$image" || exit 125
    words= number=0
    while [ $number -lt "$count" ]; do
        number=$((number + 1))
        words="$words \"\${$number}\""
    done
    eval "said=\$(\"\$engine\" run -d --name \"\$name\" $words --entrypoint tail \"\$image\" -f /dev/null 2>&1)" && return
    tries=100 # another step may have been faster
    while [ $tries -gt 0 ] && [ "$(status)" != running ]; do
        [ "$(status)" ] || break
        sleep 0.1
        tries=$((tries - 1))
    done
    [ "$(status)" = running ] && return
    echo "$said" >&2
    exit 125
}

# Ends what is left of the attempt in the container, also what changed its environment, and gives its files to the
# caller. $1: the first signal.
# shellcheck disable=SC2016 # the shell in the container expands it
end() {
    "$engine" exec --user 0 "$name" sh -c '
        mark=$1 signal=$2 own=$3 workspace=$4
        living() {
            found=
            for path in $(grep -lszxF "PLANRUN_EXEC=$mark" /proc/[0-9]*/environ); do
                path=${path#/proc/}
                found="$found ${path%/environ}"
            done
            fresh=$found
            while [ "$fresh" ]; do
                children=
                for parent in $fresh; do
                    for path in $(grep -lsx "PPid:[[:space:]]*$parent" /proc/[0-9]*/status); do
                        path=${path#/proc/}
                        child=${path%/status}
                        case " $found " in *" $child "*) ;; *) children="$children $child" ;; esac
                    done
                done
                fresh=$children
                found="$found$children"
            done
        }
        tries=0
        living
        known=$found
        while [ "$found" ] && [ $tries -lt 40 ]; do
            [ $tries -lt 30 ] || signal=KILL
            [ $tries -gt 0 ] && [ $tries -lt 30 ] || kill -s "$signal" $known 2>/dev/null
            [ "$signal" = KILL ] || sleep 0.1
            living
            known="$known $found"
            tries=$((tries + 1))
        done
        if [ "$workspace" ]; then
            owner=$(stat -c %u:%g "$own") &&
                find "$workspace" "$own" "${own%/outputs/*}/work/${own##*/}" -xdev \
                    ! -user "${owner%:*}" -exec chown -h "$owner" {} +
        fi
        [ -z "$found" ]
    ' sh "$mark" "$1" "$own" "$workspace" >/dev/null 2>&1
}

if [ "$count" = end ]; then
    end KILL || "$engine" kill "$name" >/dev/null 2>&1
    exit
fi
case $(status) in
running) ;;
created) "$engine" start "$name" >/dev/null || exit 125 ;; # the process that created it ended before the start
'') begin "$@" ;;
*)
    echo "the container $name has ended" >&2
    exit 125
    ;;
esac
shift "$count"

trap 'end TERM || "$engine" kill "$name" >/dev/null 2>&1; exit 143' HUP INT TERM
"$engine" exec "$@" &
wait $!
code=$?
end TERM
exit $code
