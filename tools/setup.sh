#!/bin/sh
# Make a virtual environment and install Commonplace in it as a link: `setup.sh .venv .` to run it, `setup.sh .venv '.[dev]'`
# to test it, too. Works as root or not, with or without python3-venv: what is missing is installed, or named.
set -eu
venv=$1 what=$2
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "Commonplace needs Python 3.11 or newer as '$python'. On Debian or Ubuntu: apt-get install python3" >&2
    exit 1
fi
echo "Setting up $venv with what Commonplace needs. Once; it takes a minute or a few."
if [ ! -x "$venv/bin/python" ] && ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    rm -rf "$venv"
    version=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing $version."
        { apt-get update -qq && apt-get install -y -qq "$version"; } >/dev/null
        "$python" -m venv "$venv"
    else
        echo "Python's venv module is missing. Run: sudo apt-get install $version   and repeat." >&2
        exit 1
    fi
fi
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip --upgrade >/dev/null
# Of pip only errors are shown.
quiet="-qq --disable-pip-version-check --no-input"
"$venv/bin/python" -m pip install $quiet --upgrade pip
"$venv/bin/python" -m pip uninstall $quiet --yes commonplace >/dev/null 2>&1 || true # what it was called once
"$venv/bin/python" -m pip install $quiet --editable "$what"
# A package that is installed as a link is not compiled, and never would be where PYTHONDONTWRITEBYTECODE is set, as in many containers.
"$venv/bin/python" -m compileall -q src || echo "WARNING: src could not be compiled; every start takes a little longer." >&2
