#!/bin/sh
# Serve the sample from a home of its own, and say where to look, what to ask and how to connect an agent.
# The user's own library and settings are not looked at: what is set in the environment or in config.toml is left out.
set -eu
bin=$1 port=$2
commonplace=$bin/commonplace home=.sample-home address=http://127.0.0.1:$port
question="why is my bread gummy"
[ "$port" = 8377 ] && other_port= || other_port=" --port $port"

for name in $(env | sed -n 's/^\(COMMONPLACE_[A-Z_]*\)=.*/\1/p'); do
    case $name in COMMONPLACE_MODELS | COMMONPLACE_REGISTRY | COMMONPLACE_OFFLINE) ;; *) unset "$name" ;; esac
done
export COMMONPLACE_CONFIG=/dev/null COMMONPLACE_HOME="$PWD/$home"

if ! "$bin/python" -c 'import socket, sys; socket.create_server(("127.0.0.1", int(sys.argv[1]))).close()' "$port" 2>/dev/null; then
    echo "Port $port is taken, perhaps by a server that runs already. Run: make run PORT=$((port + 1))" >&2
    exit 1
fi
echo "Fetching the model that finds by meaning, unless it is here (English, 34 MB, once for all libraries)."
"$commonplace" models pull >/dev/null ||
    echo "It could not be fetched. The smaller one that is built in serves until: $commonplace models pull"
echo "Reading the sample, $(find sample -type f | wc -l | tr -d ' ') notes, into $home. Your own library stays as it is."
"$commonplace" add sample --name sample >/dev/null

# Once the server answers, and not after it has ended.
(
    "$bin/python" - "$port" $$ <<'WAIT' || exit 0
import http.client, os, sys, time

port, server = map(int, sys.argv[1:])
while True:
    time.sleep(0.1)
    try:
        os.kill(server, 0)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/health")
        sys.exit(connection.getresponse().status != 200)
    except ProcessLookupError:
        sys.exit(1)
    except OSError:
        pass
WAIT
    cat <<SAID

Ask and connect from another terminal, in this folder; the last line switches to your own library.

  Look     $address
  Ask      $commonplace --home $home query "$question"
  Connect  claude mcp add --scope user --transport http commonplace $address/mcp
  Yours    Ctrl-C, then: $commonplace add ~/notes && $commonplace serve$other_port
SAID
) &
exec "$commonplace" serve --port "$port"
