"""Which names of files may hold secrets: a table of names that do, and of names that only sound so."""

from __future__ import annotations

import pytest

from planrun.risk.sensitive import looks_secret

SECRET = """
prod.tfvars .dockerconfigjson application_default_credentials.json .m2/settings.xml .config/gh/hosts.yml
wp-config.php master.key.bak .netrc .pgpass .npmrc id_rsa id_rsa.pub id_ed25519_sk x.p12 .aws/credentials
kubeconfig .git-credentials .vault-token secrets.yaml .htpasswd terraform.tfstate .env .env~ .env.bak
.env.old .env.orig .env.save .env.1 .env.swp .id_rsa.swp terraform.tfstate.backup id_rsa_backup id_rsa-old
master.key.2024-01-01 dbPassword.txt db_password mysecrets.yml client_secret_123.json gha-creds-12ab.json
prod.env app.env.local docker.env github-token api_key.txt apikey.json service-account-prod.json
my-service-account.json secrets.yaml.bak .envrc .bash_history config/credentials.yml.enc config/master.key
.gradle/gradle.properties foo/.docker/config.json .git/config /proc/self/environ shadow- #.env# .#.env
secrets/prod.yaml secrets credentials/prod token .token .secret k8s/secret-db.yaml home/.ssh/known_hosts
x.pem.gz .env.enc deploy_rsa kubeconfig-prod.yaml prod.kubeconfig .vault_pass.txt vault-pass.txt
server.key.pem .netrc.gpg prod.auto.tfvars terraform.tfvars.json .config/gcloud/x.db
sites/default/settings.php private_key.txt private-key.json .aws .ssh/ k8s/secrets Secrets.json SECRETS.YML
Credentials .ENV ID_RSA .pgpass.old aws_credentials aws-creds.csv accessKeys.csv rootkey.csv passwords.csv
.npmrc.bak wallet.dat cookies.txt oauth_token.json access_token ghtoken.txt dump/shadow .env.production
.env.test.local .wp-config.php.swp wp-config.php~ wp-config.bak wp-config.php.save
kube/config.bak/.kube/config .kube/config.old .pypirc .gem/credentials tests/secrets.yml tests/.env
tests/a.key .cargo/credentials.toml auth.json .docker/config.json .my.cnf .s3cfg .boto
"""
ORDINARY = """
tests/test_secrets.py keyboard.md src/secrets.py planrun/secrets/masks.py docs/secrets.md tokenizer.json
special_tokens_map.json src/tokens.css src/token/lexer.go go/token/ planrun/secrets/ credentials/
keymap.json keys.py package.json README.md src/password-reset/index.js forgot-password secretary.txt
.github/workflows/secrets-scan.yml public_key.txt monkey.txt turkey.json hotkeys.json packages/token-service
keystore/ accounts/keystore src/credentials.go credentials/tls.go environment.yml env.py
environments/prod.json settings.xml config/gh/hosts.yml hosts.yml config.json .github/ci.yml .gitignore . ..
/ a secret-santa.md .secrets.baseline secrets.example.yaml CHANGELOG.md tests/data/keyboard.json author.txt
authority.json compass.json passage.txt bypass.txt passenger.csv trespass.txt tests/test_credentials.py
history.txt docs/history .eslintrc .prettierrc .python-version .tool-versions sequence.1 app.js.map
data-2024.csv v1.2.3 a-1 lib_2 i18n/password.po env/bin/python .venv/bin/python
node_modules/client-secrets-manager x.rsa.go src/environ/ .hypothesis .pytest_cache .idea/workspace.xml
primary_key.sql foreign_keys.csv key.py translations/keys.yml certifi/cacert.pem tests/bad/secrets-twice.yml
fixtures/no-token.json build/default/app.txt
"""


@pytest.mark.parametrize("path", SECRET.split())
def test_a_name_that_may_hold_secrets(path: str) -> None:
    """Keys, credentials, environment files and copies of them, wherever they stand."""
    assert looks_secret(path)
    assert looks_secret(f"a/b/{path}")
    assert path.endswith("/") or looks_secret(f"{path}~")


@pytest.mark.parametrize("path", ORDINARY.split())
def test_a_name_that_only_sounds_so(path: str) -> None:
    """Code and documents about secrets, forms to fill in, and words that hold the letters of one."""
    assert not looks_secret(path)
