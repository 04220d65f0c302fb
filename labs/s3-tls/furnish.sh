#!/bin/sh
# The machine that the report's file expects, in the overlay of a block: certificate, challenge, the name of the first server.
set -e
live=/etc/letsencrypt/live/gyural.shop
challenge=/var/www/certbot/.well-known/acme-challenge
mkdir -p $live $challenge
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=gyural.shop -addext subjectAltName=DNS:gyural.shop \
    -keyout $live/privkey.pem -out $live/fullchain.pem 2> /dev/null
printf 'the answer to the challenge' > $challenge/token
printf '127.0.0.2 honorsParking-master\n127.0.0.1 gyural.shop\n' >> /etc/hosts
