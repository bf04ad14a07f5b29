#!/bin/sh
# Install the clients that the tests borrow from npm: Node 22 and what tests/node/package.json pins, once.
# Where npm cannot be had this says which command to run, and the tests that need it are skipped; with CI=true it fails.
set -eu
cd "$(dirname "$0")/../tests/node"

give_up() {
    echo "WARNING: $1" >&2
    echo "WARNING: tests against clients of others (tests/clients, tests/conformance) are skipped until then." >&2
    case "${CI:-}" in 1 | true | TRUE | yes) exit 1 ;; esac
    exit 0
}

if ! command -v npm >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing npm, which the tests against other clients need."
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null; } ||
            give_up "npm could not be installed. Run: apt-get install nodejs npm   and then: make node"
    else
        give_up "npm is missing. Run: sudo apt-get install nodejs npm   and then: make node"
    fi
fi
npm ci --no-audit --no-fund --loglevel=error ||
    give_up "the packages of tests/node could not be installed. Mend what npm says above and run: make node"
[ "$(node_modules/.bin/node --version | cut -d. -f1)" = v22 ] ||
    give_up "npm did not install Node 22 (npm may forbid install scripts). Run: make node"
touch node_modules/.ready
