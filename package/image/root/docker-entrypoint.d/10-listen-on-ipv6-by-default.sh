#!/bin/sh
# Adds `listen [::]:8080` to the default server if the container has IPv6 and the file is as the image brought it.
set -e
conf=/etc/nginx/conf.d/default.conf

if [ -f /proc/net/if_inet6 ] && [ -w "$conf" ] && cmp -s "$conf" /usr/share/weir/default.conf; then
    sed -i 's/listen 8080;/listen 8080;\n    listen [::]:8080;/' "$conf"
fi
