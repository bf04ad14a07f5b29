#!/bin/sh
# Install what the tests borrow from Debian: git and ssh to fetch with, openssl for a certificate, pgbouncer for a pooler,
# strace to see what a server opens and connects to, chromium to look at the page with.
# Where that cannot be done this says which command to run, and the tests that need it are skipped; with CI=true it fails.
set -eu
PATH=$PATH:/usr/sbin

wanted=
for pair in git:git ssh:openssh-client openssl:openssl pgbouncer:pgbouncer strace:strace chromium:chromium; do
    command -v "${pair%%:*}" >/dev/null || wanted="$wanted ${pair#*:}"
done
[ -n "$wanted" ] || exit 0

give_up() {
    echo "WARNING: the tests that need$wanted are skipped. Run: $1" >&2
    case "${CI:-}" in 1 | true | TRUE | yes) exit 1 ;; esac
    exit 0
}

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    give_up "sudo apt-get install$wanted"
fi
echo "Installing$wanted, which some tests need."
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d # asked before a package starts a server of its own; the tests start theirs
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
fi
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends $wanted >/dev/null; } ||
    give_up "apt-get install$wanted"
