#!/bin/sh
# prepare.sh DIR: makes DIR/database, once: MariaDB's directory with WordPress and ten posts in it. As root, in namespaces of
# its own, so that nothing of it is seen outside or outlives it.
set -eu
[ "${INSIDE:-}" ] || INSIDE=1 exec unshare --net --mount --pid --fork --mount-proc --kill-child sh "$0" "$@"
dir=$1 here=$(dirname "$(realpath "$0")")
ip link set lo up
rm -rf "$dir" && mkdir -p "$dir"
mariadb-install-db --no-defaults --innodb-log-file-size=8M --datadir="$dir/new" --user=root --skip-test-db
mariadbd --no-defaults --innodb-log-file-size=8M --datadir="$dir/new" --user=root --bind-address=127.0.0.1 \
    --socket="$dir/socket" --log-error="$dir/mariadb.log" &
server=$!
waited=0
until [ -S "$dir/socket" ]; do
    waited=$((waited + 1))
    [ "$waited" -lt 300 ] || { cat "$dir/mariadb.log" >&2; exit 1; }
    sleep 0.1
done
mariadb --no-defaults --socket="$dir/socket" -e "CREATE DATABASE wordpress;
    CREATE USER wordpress@'127.0.0.1' IDENTIFIED BY 'wordpress'; GRANT ALL ON wordpress.* TO wordpress@'127.0.0.1';"
mount --bind "$here" /etc/wordpress
php -d display_errors=1 "$here/install.php"
kill "$server"
wait "$server"
mv "$dir/new" "$dir/database"
