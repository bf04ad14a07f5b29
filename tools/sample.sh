#!/bin/sh
# Load the sample library into an empty home, so that there is something to search at once.
set -eu
commonplace=$1
if "$commonplace" status | grep -q "^  [1-9].* document"; then
    exit 0
fi
"$commonplace" add sample --name sample
