#!/bin/sh
# MariaDB for a lab. `mariadb.sh make DIR`: an empty one with the lab's table, made once. `mariadb.sh run DIR ROOM`: a copy of it, on
# port 3306 of its host, in the place of this shell; what it writes is gone with the block. Whoever reaches it may do anything: it is
# in a network of its own.
set -e
case $1 in
make)
    mkdir -p "$(dirname "$2")"
    new=$(mktemp -d "$2.XXXXXX")
    mariadb-install-db --no-defaults --user=root --datadir="$new" --skip-test-db --innodb-log-file-size=16M > "$new.log" 2>&1 \
        || { cat "$new.log"; exit 1; }
    mariadbd --no-defaults --user=root --datadir="$new" --innodb-log-file-size=16M --bootstrap >> "$new.log" 2>&1 <<SQL || { cat "$new.log"; exit 1; }
CREATE DATABASE lab;
USE lab;
CREATE TABLE visits (id INT PRIMARY KEY, count BIGINT NOT NULL) ENGINE=InnoDB;
INSERT INTO visits VALUES (1, 0);
SQL
    rm -rf "$2" "$new.log"
    mv "$new" "$2"
    ;;
run)
    cp -r "$2" "$3/mariadb"
    exec mariadbd --no-defaults --user=root --datadir="$3/mariadb" --socket="$3/mariadb.sock" --port=3306 --bind-address=0.0.0.0 \
        --skip-grant-tables --skip-name-resolve --innodb-log-file-size=16M --innodb-buffer-pool-size=32M \
        --innodb-flush-log-at-trx-commit=2 --max-connections=200
    ;;
esac
