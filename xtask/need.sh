# Sourced by weir-up and weir-test: notes which Debian packages are missing, then installs those and nothing else.
#
#   need COMMAND PACKAGE   need_file PATH PACKAGE   need_library NAME PACKAGE   need_module PYTHON_MODULE PACKAGE
#   install_missing

missing=

need() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || missing="$missing $2"; }

need_file() { [ -e "$1" ] || missing="$missing $2"; }

need_library() { pkg-config --exists "$1" 2>/dev/null || missing="$missing $2"; }

need_module() { python3 -c "import $1" 2>/dev/null || missing="$missing $2"; }

install_missing() {
    [ -n "$missing" ] || return 0
    as_root=
    [ "$(id -u)" = 0 ] || as_root=sudo
    echo "installing:$missing"
    $as_root apt-get update -qq
    # The services of these packages do not start: each test starts its own programs, on ports of its own.
    policy=/usr/sbin/policy-rc.d
    is_ours=
    if [ ! -e "$policy" ]; then
        is_ours=yes
        trap '$as_root rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
        $as_root chmod 755 "$policy"
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    [ -n "$is_ours" ] || return 0
    # The caller goes on with `exec`, after which no trap runs.
    $as_root rm -f "$policy"
    trap - EXIT
}

need_rust() {
    command -v cargo >/dev/null 2>&1 && return 0
    echo "cargo is missing: install Rust 1.95 or newer (https://rustup.rs), then run this again" >&2
    exit 1
}
