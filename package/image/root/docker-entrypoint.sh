#!/bin/sh
# Prepares the configuration as the image of nginx does, then becomes the command.
set -e

log() {
    [ -n "${NGINX_ENTRYPOINT_QUIET_LOGS:-}" ] || echo "$0: $*"
}

case "$1" in
    nginx | weir)
        for script in /docker-entrypoint.d/*; do
            case "$script" in
                *.envsh) [ -x "$script" ] && log "Sourcing $script" && . "$script" || log "Ignoring $script, not executable" ;;
                *.sh) if [ -x "$script" ]; then log "Launching $script"; "$script"; else log "Ignoring $script, not executable"; fi ;;
                *) log "Ignoring $script" ;;
            esac
        done
        log "Configuration complete; ready for start up"
        ;;
esac

exec "$@"
