# What all shapes share: $1 is the number that tells this trial's processes, $2 how the main process ends, and
# $3 the file that says that everything has been started.
token=$1
how=$2
ready=$3

# Everybody in a trial sleeps for that many seconds, so that its command line names the trial.
finish() {
    : >"$ready"
    [ "$how" = exit ] && exit 0
    exec sleep "$token"
}
