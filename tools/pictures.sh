#!/bin/sh
# Draw what a search prints: `make pictures`. Needs tmux. The library is made of the sample and of some of our own code,
# in a folder that goes again.
set -eu
bin=$(cd "$1" && pwd) checkout=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PATH="$bin:$PATH" HOME="$scratch" COMMONPLACE_HOME="$scratch/library" COMMONPLACE_CONFIG=/dev/null
export COMMONPLACE_MODEL=static COMMONPLACE_OFFLINE=1

cp -r sample "$scratch/vault"
cp -r src/commonplace/text "$scratch/code"
cd "$scratch"
rm -rf code/__pycache__
find vault -type f -exec touch -d '2 days ago' {} +
find code -type f -exec touch -d '3 weeks ago' {} +
commonplace add vault >add.log 2>&1
commonplace add code >>add.log 2>&1

draw() {
    name=$1
    shift
    python "$checkout/tools/picture.py" --run commonplace "$@" >"$checkout/docs/pictures/$name.svg"
}
mkdir -p "$checkout/docs/pictures"
draw search query a migration that waits for a lock -n 3
draw code search front matter title -c code -n 2
draw explain query brewing green tea --explain -n 2
