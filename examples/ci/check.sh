#!/bin/sh
# The checks of a pipeline. Each is a word: ./check.sh config, ./check.sh load, ./check.sh ab BASE.conf
#
# Exit codes: 0 the check passed; 1 it failed; others: docs/guide/ci.md. They need weir in PATH, and nothing else.
set -eu

CONF=${CONF:-nginx.conf}            # your configuration
APP=${APP:-weir origin --listen 127.0.0.1:3000}  # the command that starts your application
SCRIPT=${SCRIPT:-ci.yml}            # your Artillery script
TARGET=${TARGET:-http://127.0.0.1:8080/}
OUT=${OUT:-ci-report}

mkdir -p "$OUT" logs

case ${1:-} in
config)
    # Does weir take the file? Is a line wrong or a risk? Other findings pass.
    weir edge -t -p . -c "$CONF"
    weir doctor "$CONF" --no-host --brief
    ;;
load)
    # The application, the edge in front of it, and the load with its checks (`ensure` in the script).
    $APP >"$OUT/app.log" 2>&1 &
    app=$!
    weir edge -p . -c "$CONF" -g 'daemon off;' >"$OUT/edge.log" 2>&1 &
    edge=$!
    trap 'kill $app $edge 2>/dev/null; wait 2>/dev/null || true' EXIT
    tries=0
    until weir load "$TARGET" -n 1 -c 1 -q >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || { echo "no answer from $TARGET: see $OUT/edge.log" >&2; exit 1; }
        sleep 0.2
    done
    weir load --fail-if-limited -t "$TARGET" -o "$OUT/run.json" --html "$OUT/run.html" "$SCRIPT"
    ;;
ab)
    # The configuration of the base branch beside this one, in alternating blocks. A machine of a pipeline is seldom quiet.
    # Several changes that belong together: TOGETHER=keepalive,proxy_http_version
    base=${2:?name the configuration of the base branch}
    if cmp -s "$base" "$CONF"; then echo "$CONF is unchanged"; exit 0; fi
    code=0
    weir lab ab "$base" "$CONF" --origin "$APP" --rate "${RATE:-200}" --block "${BLOCK:-10s}" --warmup 2s --noisy \
        ${TOGETHER:+--together "$TOGETHER"} --store "$OUT/runs" --html "$OUT/ab.html" / || code=$?
    # 3: the data supports no verdict. That is no failure of the change, but nobody may take it for a success.
    if [ "$code" = 3 ]; then echo "no verdict: see $OUT/ab.html" >&2; exit 0; fi
    exit "$code"
    ;;
*)
    echo "usage: check.sh config | load | ab BASE.conf" >&2
    exit 2
    ;;
esac
