#!/bin/sh
# `npm.sh DIR`: the packages of npm that the labs' applications need, made once in DIR. An application finds them by
# MODULES, which a lab sets to `DIR/`; without MODULES it takes those of a checkout's tests.
set -e
mkdir -p "$1"
npm install --silent --no-audit --no-fund --prefix "$1" express@5.3.0 socket.io@4.8.4 socket.io-client@4.8.4 ws@8.23.0
