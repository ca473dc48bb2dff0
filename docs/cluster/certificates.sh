#!/bin/sh
# Make a certificate authority and one certificate for a cluster in the folder `tls`, and `tls/environment`, which tells
# Dask and planrun of them. The folder has to be readable at the same path on all machines, and only by their user.
set -eu
umask 077
mkdir tls
cd tls
openssl req -x509 -newkey rsa:3072 -nodes -days 30 -subj /CN=cluster-authority -keyout authority-key.pem -out authority.pem
openssl req -newkey rsa:3072 -nodes -subj /CN=cluster -keyout key.pem -out request.pem
openssl x509 -req -in request.pem -CA authority.pem -CAkey authority-key.pem -CAcreateserial -days 30 -out certificate.pem
rm request.pem
{
    echo "export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true"
    echo "export DASK_DISTRIBUTED__COMM__TLS__CA_FILE='$PWD/authority.pem'"
    for who in CLIENT SCHEDULER WORKER; do
        echo "export DASK_DISTRIBUTED__COMM__TLS__${who}__CERT='$PWD/certificate.pem'"
        echo "export DASK_DISTRIBUTED__COMM__TLS__${who}__KEY='$PWD/key.pem'"
    done
} > environment
