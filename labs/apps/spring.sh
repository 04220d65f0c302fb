#!/bin/sh
# `spring.sh make JAR`: the Spring Boot application beside this file, built once by Maven, with what Maven Central has.
# `spring.sh run JAR PORT`: it, in the place of this shell; DB, REDIS and POOL are in the environment. Its threads are few and
# compiled quickly, since several run on two cores.
set -e
case $1 in
make)
    mkdir -p "$(dirname "$2")"
    room=$(mktemp -d "$2.XXXXXX")
    cp -r "$(dirname "$0")/spring/." "$room"
    mvn -q -B -f "$room/pom.xml" package || { rm -rf "$room"; exit 1; }
    mv "$room/target/spring.jar" "$2"
    rm -rf "$room"
    ;;
run)
    exec java -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ActiveProcessorCount=1 -jar "$2" --server.port="$3"
    ;;
esac
