"""Which names of files say that they may hold secrets: keys, credentials, environment files."""

from __future__ import annotations

from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FOLDERS = names_in(
    ".ssh .gnupg .aws .azure .gcloud .kube .docker .password-store .oci .databricks .terraform.d .keyrings keyrings .secrets .credentials .vault .sops .git-crypt .env"
)
# Folders with code in many projects: only their other files count.
_MIXED_FOLDERS = names_in("secrets secret credentials creds passwords")
# What holds keys below a folder of settings; a folder alone is every file in it.
_BELOW = names_in(
    ".m2/settings.xml .m2/settings-security.xml .config/gh/hosts.yml .config/gh/hosts.yaml .config/gcloud .config/hub .config/glab-cli/config.yml .config/doctl/config.yaml .config/rclone/rclone.conf"
    " .config/hcloud/cli.toml .config/pypoetry/auth.toml .config/op .config/stripe/config.toml .config/composer/auth.json .config/containers/auth.json .config/nuget/nuget.config .nuget/nuget.config"
    " .nuget/nuget/nuget.config .config/configstore .config/sops .config/heroku .config/netlify/config.json .config/flyctl .config/linode-cli .config/openstack/clouds.yaml .config/scw .config/tea/config.yml"
    " .config/vercel .gradle/gradle.properties .bundle/config .gem/credentials .composer/auth.json .subversion/auth .snowflake/config.toml .snowsql/config .fly/config.yml .netlify/config.json .vercel/auth.json"
    " .kaggle/kaggle.json .aliyun/config.json .bluemix/config.json .hcloud/cli.toml .mozilla/firefox .chef/knife.rb .vagrant.d .local/share/keyrings default/settings.php .jenkins/secrets .android/debug.keystore"
    " .sonar/sonar.properties .huggingface/token .cache/huggingface/token .pulumi/credentials.json .wrangler/config/default.toml .tailscale .x11-auth"
)
_FILES = names_in(
    ".netrc _netrc .npmrc .pypirc .git-credentials .pgpass pgpass.conf .my.cnf .mylogin.cnf .htpasswd htpasswd .htdigest .vault-token .vault-pass .vault_pass .boto .s3cfg .dockercfg .dockerconfigjson dockerconfig.json"
    " .terraformrc terraform.rc .envrc .databrickscfg .ossutilconfig .passwd-s3fs .authinfo .lftprc .ftpconfig .fetchmailrc .msmtprc .curlrc .wgetrc .mongorc.js .snowsql .smbcredentials .rediscli_auth .cvspass .rhosts"
    " .dbshell .lesshst .esmtprc .azureauth azureauth.json kubeconfig admin.conf kubelet.conf rclone.conf kaggle.json auth.json sa.json adc.json sftp-config.json sftp.json filezilla.xml sitemanager.xml recentservers.xml"
    " wallet.dat ntds.dit krb5.keytab key3.db key4.db logins.json cookies cookies.txt cookies.sqlite environ creds passwords credentials signons.sqlite service-account.json service_account.json secret secrets token"
    " tokens tokens.txt tokens.json pass.txt passwd shadow gshadow sudoers keys.txt keys.json rootkey.csv wp-config wp-config.php config.inc.php configuration.php localsettings.php local_settings.py local.settings.json"
)
_PUBLIC = names_in("cacert.pem cacerts.pem roots.pem ca-bundle.pem")
_STARTS = (
    *(".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss", "identity.", "ssh_host_"),
    *("krb5cc_", "wp-config.", "kubeconfig", "client_secret", ".vault-pass", ".vault_pass", ".vaultpass"),
    *("terraform.tfstate", "terraform.tfvars"),
)  # fmt: skip
_ENDS = (
    *(".pem", ".key", ".p12", ".pfx", ".p8", ".pk8", ".pkcs12", ".pkcs8", ".jks", ".jceks", ".bcfks"),
    *(".keystore", ".kdb", ".kdbx", ".ppk", ".ovpn", ".keytab", ".gpg", ".pgp", ".keychain", ".agekey"),
    *(".psk", ".env", ".secret", ".secrets", ".credentials", ".creds", ".token", ".tfvars"),
    *(".tfvars.json", ".tfstate", ".dockerconfigjson", ".dockercfg", ".htpasswd", ".netrc", ".pgpass"),
    *(".npmrc", ".pypirc", ".kubeconfig", ".publishsettings", ".ccache", ".kirbi", ".wallet", ".password"),
    *(".passwd", "_rsa", "_dsa", "_ecdsa", "_ed25519"),
)  # fmt: skip
# Words that say it in a name of data, also with others before them (`dbpassword`), and `key` behind another word.
_WORDS = names_in(
    "privatekey privkey accesskey secretkey serviceaccount tfvars tfstate adminsdk keytab kubeconfig dockerconfigjson keystore truststore"
)
_STEMS = ("password", "passwd", "credential")
_TAILS = (
    *("secret", "secrets", "password", "passwords", "passwd", "passphrase", "passphrases", "credential"),
    *("credentials", "creds", "token", "apikey", "apikeys"),
)  # fmt: skip
_KEYS = names_in("key keys")
_OF_KEYS = names_in(
    "api private priv access ssh deploy signing sign secret master encryption encrypt account sa gpg pgp client server tls ssl host service auth jwt storage aws gcp azure github gitlab stripe root admin ca rsa ed25519"
    " age upload release prod production staging"
)
_PAIRS = (("service", "account"), ("vault", "pass"), ("db", "pass"), ("oauth", "client"))
# A name with one of these is about secrets, or a form to be filled in.
_ABOUT = names_in(
    "reset forgot forgotten change rotate rotation create generate validate validator strength check policy policies manager schema example examples sample template templates tpl dist skeleton mock mocks fake dummy"
    " placeholder public pub docs scan scanner scanning baseline ignore"
)
# Endings of code and documents: a word in such a name is what they are about.
_CODE = names_in(
    "py pyi pyc pyx ipynb js mjs cjs ts mts cts jsx tsx vue svelte rb erb go rs java class kt kts scala groovy gradle c cc cpp cxx h hh hpp cs fs vb swift m mm php phtml pl pm perl lua ex exs erl hrl hs ml mli clj cljs"
    " dart jl r zig nim d sh bash zsh fish ps1 psm1 bat cmd sql html htm xhtml css scss sass less md mdx markdown rst adoc tex po pot mo svg png jpg jpeg gif ico webp proto graphql tf hcl bicep mk cmake j2 jinja tmpl"
    " mustache ejs hbs feature snap so a o dll exe jar wasm pdf 1 5 8"
)
# Folders whose files are samples: a word in a longer name is what they are a sample of.
_SAMPLES = names_in("test tests testdata spec specs fixtures __tests__ examples docs doc")
_COPIES = names_in(
    "bak bkp backup bkup back old orig original save saved sav prev previous copy copied tmp temp swp swo swn swx disabled off new rpmsave rpmnew rpmorig dpkg-old dpkg-new dpkg-dist ucf-old gz bz2 xz zst zip tgz tar 7z"
    " rar b64 base64 enc asc encrypted decrypted dec plain local"
)
_DIGITS = frozenset("0123456789")
_WILD = frozenset("*?[{")
_PARTED = str.maketrans(dict.fromkeys("-_. ()[]{}+@#~%,=", " "))


def looks_secret(path: str) -> bool:
    """Return whether a path names keys, credentials or an environment file, by its words alone, wherever it stands.

    Copies count like what they are a copy of (`master.key.bak`, `.env~`); code and documents about secrets do not
    (`tests/test_secrets.py`, `keyboard.md`). A path that ends in `/` is a folder: it counts when all files in it do, as
    `.ssh/`; `secrets/` does not, which may hold code as well.
    """
    given = [part for part in path.split("/") if part and part != "."]
    if not given:
        return False
    *folders, _ = parts = [part.lower() for part in given]
    name = _original(given[-1])
    last = name.lower()
    is_code = "." in last[1:] and last.rpartition(".")[2] in _CODE
    if ".git" in parts:
        below = parts[parts.index(".git") + 1 :]
        return (
            not below or below[-1].startswith(("config", "credentials")) or not _FOLDERS.isdisjoint(folders)
        )
    if any(part in _FOLDERS or part.startswith(".env") for part in folders) or last in _FOLDERS:
        return True
    if not is_code and not _MIXED_FOLDERS.isdisjoint(folders):
        return True
    if any(part[:1] == "." or part == "default" for part in parts) and _is_below(folders, last):
        return True
    if path.endswith("/"):
        return False
    is_sample = not _SAMPLES.isdisjoint(folders) and last.partition(".")[0] not in _TAILS
    return _is_listed(last) or (not is_code and not is_sample and _says_so(name))


def _is_listed(name: str) -> bool:
    bare = name.lstrip(".")  # of `.id_rsa.swp`
    if name in _PUBLIC:
        return False
    is_named = not _FILES.isdisjoint((name, bare))
    return (
        is_named
        or name.startswith(_STARTS)
        or bare.startswith(_STARTS)
        or name.endswith(_ENDS)
        or (name != bare and name.endswith("history"))
    )


def _is_below(folders: list[str], last: str) -> bool:
    whole = "/" + "/".join((*folders, last)) + "/"
    return any(f"/{path}/" in whole for path in _BELOW)


def _original(name: str) -> str:
    """Return the name of the file that one is a copy of: without what editors, packers and people add to names."""
    bare = name.strip("~#") or name
    while True:
        bare = bare.removesuffix("-")
        at = max(bare.rfind("."), bare.rfind("-"), bare.rfind("_"), bare.rfind(" "))
        end = bare[at + 1 :]
        if at < 1 or not (end.lower() in _COPIES or _DIGITS.issuperset(end)):
            return bare
        bare = bare[:at].rstrip("~")


def _says_so(name: str) -> bool:
    """Whether a word of the name of a file with data says that it is a secret."""
    if not name.islower():  # dbPassword
        name = "".join(
            f" {char}" if char.isupper() and before.islower() else char
            for before, char in zip(" " + name, name, strict=False)
        ).lower()
    words = [word.rstrip("0123456789") for word in name.translate(_PARTED).split()]
    if not _ABOUT.isdisjoint(words):
        return False
    if "." not in name[1:] and name[:1] != ".":
        words = words[-2:]  # perhaps a folder, which is about what its name begins with
        if words and not (words[-1].endswith(_TAILS) or words[-1] in _KEYS):
            return False
    for at, word in enumerate(words):
        if word in _WORDS or word.startswith(_STEMS) or word.endswith(_TAILS):
            return True
        before = words[at - 1] if at else ""
        if (word in _KEYS and before in _OF_KEYS) or (before, word) in _PAIRS:
            return True
    return False


# Names by which files with secrets are common: what a pattern is compared with.
_COMMON = (
    *(".env", ".env.local", "prod.env", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd"),
    *(".vault-token", ".dockercfg", ".envrc", ".aws", ".ssh", ".kube", ".docker", ".gnupg", ".git", ".gitconfig"),
    *("id_rsa", "id_ed25519", "server.key", "server.pem", "master.key", "cert.p12", "credentials", "credentials.json"),
    *("secrets.yml", "secrets.yaml", "secret.txt", "secrets", "token.txt", "terraform.tfstate", "prod.tfvars"),
    *("kubeconfig", "wp-config.php", "auth.json", "passwords.txt"),
)  # fmt: skip


def may_be_secret(pattern: str) -> bool:
    """Return whether a pattern of a shell is about files with secrets: it fits one of their usual names.

    `*` and `*.json` are about all files, and count as what they match is known.
    """
    last = pattern.rstrip("/").rpartition("/")[2].lower()
    if _WILD.isdisjoint(last):
        return False
    end = last.lstrip("*")
    if not end or (last[0] == "*" and end[0] == "." and _WILD.isdisjoint(end)):
        return bool(end) and looks_secret(f"x{end}")
    return may_be(last, _COMMON)


def may_be(pattern: str, names: Iterable[str]) -> bool:
    """Return whether a pattern fits one of some names."""
    return any(fits(name, each) for each in _alternatives(pattern.lower()) for name in names)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces stands for; with more than a few of them, the one that fits all."""
    before, brace, rest = pattern.partition("{")
    inner, end, after = rest.partition("}")
    if not (brace and end):
        return [pattern]
    if "{" in inner or after.count("{") > 2:
        return ["*"]
    return [each for part in inner.split(",") for each in _alternatives(f"{before}{part}{after}")]


def fits(name: str, pattern: str) -> bool:
    """Return whether a pattern fits a whole name; a set of characters in brackets counts as any character."""
    places = {0}
    at = 0
    while places and at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            places = set(range(min(places), len(name) + 1))
            continue
        is_any = char == "?"
        if char == "[" and "]" in pattern[at + 1 :]:
            at = pattern.index("]", at + 1) + 1
            is_any = True
        elif char == "\\" and at < len(pattern):
            char = pattern[at]
            at += 1
        places = {place + 1 for place in places if place < len(name) and (is_any or name[place] == char)}
    return len(name) in places
