# A child that keeps the step's output open, from a session of its own.
. "${0%/*}/lib.sh"
echo begun
setsid sleep "$token" &
finish
