#!/bin/sh
# Writes /etc/nginx/templates/NAME.template as /etc/nginx/conf.d/NAME, with the environment's variables filled in.
# $name of nginx stays, unless the environment has a variable of that name.
set -e

log() {
    [ -n "${NGINX_ENTRYPOINT_QUIET_LOGS:-}" ] || echo "$0: $*"
}

fill() {
    awk '
        BEGIN {
            filter = ENVIRON["NGINX_ENVSUBST_FILTER"]
            for (name in ENVIRON) if (name ~ /^[A-Za-z_][A-Za-z0-9_]*$/ && name ~ filter) known[name] = 1
        }
        {
            rest = $0
            while (match(rest, /\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)/)) {
                word = substr(rest, RSTART, RLENGTH)
                name = word
                gsub(/[${}]/, "", name)
                printf "%s%s", substr(rest, 1, RSTART - 1), (name in known) ? ENVIRON[name] : word
                rest = substr(rest, RSTART + RLENGTH)
            }
            print rest
        }
    '
}

# All files with this ending below the folder of templates, each into the same place below another folder.
write_all() {
    ending=$1 folder=$2
    [ -d "$templates" ] || return 0
    found=$(find -L "$templates" -type f -name "*$ending" | sort)
    [ -n "$found" ] || return 0
    mkdir -p "$folder"
    if [ ! -w "$folder" ]; then
        log "ERROR: $templates exists, but $folder is not writable"
        return 0
    fi
    echo "$found" | while read -r template; do
        name=${template#"$templates"/}
        output=$folder/${name%"$ending"}
        mkdir -p "${output%/*}"
        log "Running envsubst on $template to $output"
        fill < "$template" > "$output"
    done
}

templates=${NGINX_ENVSUBST_TEMPLATE_DIR:-/etc/nginx/templates}
streams=${NGINX_ENVSUBST_STREAM_OUTPUT_DIR:-/etc/nginx/stream-conf.d}
write_all "${NGINX_ENVSUBST_TEMPLATE_SUFFIX:-.template}" "${NGINX_ENVSUBST_OUTPUT_DIR:-/etc/nginx/conf.d}"
write_all "${NGINX_ENVSUBST_STREAM_TEMPLATE_SUFFIX:-.stream-template}" "$streams"

if [ -d "$streams" ] && [ -w /etc/nginx/nginx.conf ] && ! grep -q '^ *stream' /etc/nginx/nginx.conf; then
    log "Adding a stream block to /etc/nginx/nginx.conf"
    printf 'stream {\n    include %s/*.conf;\n}\n' "$streams" >> /etc/nginx/nginx.conf
fi
