# Runs a server for as long as its owner lives.
#
# The owner holds the other end of our standard input and writes nothing to it. The kernel closes it however
# the owner ends, so this script outlives it by what the shutdown takes. Standard output is the server's log.
#
# bin: directory of the Postgres binaries      data: data directory, initialised when absent
# init: options of initdb                      exited: file that appears when the server ends
# signal: how to stop the server               remove: directory to remove at the end, or empty
# remaining arguments: options of the server
bin=$1 data=$2 init=$3 exited=$4 signal=$5 remove=$6
shift 6

# Only the end of the owner ends this script; ctrl-c and `kill` are for the owner to handle.
trap '' HUP INT QUIT TERM

# An interrupted initdb must not leave half a data directory under its final name.
# shellcheck disable=SC2086 # options are several words
initialise() {
    [ -e "$data" ] || {
        rm -rf "$data.new" &&
            "$bin/initdb" -D "$data.new" $init &&
            mv "$data.new" "$data"
    }
}

{
    initialise && "$bin/postgres" -D "$data" "$@"
    echo "$?" >"$exited.new" && mv "$exited.new" "$exited"
} </dev/null &
job=$!

cat >/dev/null

# The script leads its own process group. A process that has just started may not handle the signal yet, so
# it is repeated; the server takes repetitions calmly.
while kill -0 "$job" 2>/dev/null; do
    kill -s "$signal" 0
    sleep 0.02
done
wait

[ -z "$remove" ] || rm -rf "$remove"
