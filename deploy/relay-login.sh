#!/bin/sh
# The login of the relay. The image of PostgreSQL runs this once, on an empty volume; what the role may do is given to it by
# `sendoff migrate roles --apply`, which compose.yaml runs.
psql --no-psqlrc --set=ON_ERROR_STOP=1 --set=password="$(cat /run/secrets/relay-password)" \
    --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
CREATE ROLE outbox_relay_role NOLOGIN;
CREATE ROLE sendoff_relay LOGIN PASSWORD :'password' IN ROLE outbox_relay_role;
SQL
