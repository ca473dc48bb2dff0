"""Databases and stores of objects: psql, sqlite3, redis-cli, aws."""

from __future__ import annotations

import re

from planrun.convert.reader import UntranslatableError, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.convert.dagu.calls import Call

_SQL = frozenset((
    "dsn", "query", "params", "timeout", "transaction", "outputformat", "headers", "streaming", "outputfile",
    "nullstring", "sharedmemory", "maxrows", "import", "isolationlevel", "advisorylock", "filelock",
))  # fmt: skip
_READS = re.compile(r"\s*(?:select|with|values|table|show)\b", re.IGNORECASE)
_FORMATS = ("jsonl", "json", "csv")


def _query(call: Call) -> tuple[str, str]:
    """Return the text of a query, and the form of its rows; raises UntranslatableError."""
    call.settings.refuse_unknown(_SQL)
    if call.op not in ("", "query"):
        raise UntranslatableError(f"action:{call.kind}.{call.op}", f"the action {call.kind}.{call.op}")
    query = (call.command or call.settings.text("query") or call.script).strip()
    if call.settings.has("import") and not query:
        return "", "csv"
    if not query:
        raise call.refuse("a query is missing")
    if call.settings.has("maxrows"):
        raise call.refuse("`max_rows`: write a LIMIT")
    form = call.settings.text("outputformat") or "jsonl"
    if form not in _FORMATS:
        raise call.refuse(f"rows as {form}")
    return query, form


def _given(call: Call) -> list[tuple[str, str]]:
    """Return the parameters of a query; numbers from 1 stand for positions."""
    node = call.settings.get("params")
    if node is not None and node.kind == SEQUENCE:
        return [(str(at), text_of(item)) for at, item in enumerate(node.value, 1)]
    return list(call.pairs("params"))


def _into(call: Call) -> str:
    file = call.settings.text("outputfile")
    return f" > {call.word(file)}" if file else ""


def _table(call: Call) -> tuple[str, str, str, bool]:
    """Return file, table and columns of an import, and whether the file has a line of names."""
    own = call.settings.below("import")
    own.refuse_unknown({"inputfile", "table", "format", "hasheader", "columns", "batchsize", "delimiter"})
    table, columns = own.text("table"), call.reader.texts(own.get("columns"), "`columns`")
    if (own.text("format") or "csv") != "csv" or own.has("delimiter"):
        raise call.refuse(f"an import of {own.text('format') or 'other text'}")
    names = [table, *columns]
    if not own.has("inputfile") or not all(re.fullmatch(r"[A-Za-z_][\w.]*", name) for name in names):
        raise call.refuse("an import without a file or a table")
    return own.text("inputfile"), table, ", ".join(columns), truth_of(own.get("hasheader")) is not False


def _locked(call: Call) -> str:
    """Return the statements before a query that take a lock, and set how transactions are isolated."""
    found = ""
    if call.settings.has("advisorylock"):
        name = call.settings.text("advisorylock").replace("'", "''")
        found += f"SELECT FROM (SELECT pg_advisory_lock(hashtext('{name}'))) planrun_lock;\n"
    if call.settings.has("isolationlevel"):
        level = call.settings.text("isolationlevel").replace("_", " ").upper()
        found = f"SET TRANSACTION ISOLATION LEVEL {level};\n{found}"
    return found


def _copied(call: Call) -> str:
    """Return the command that reads a file into a table of PostgreSQL."""
    file, table, columns, has_header = _table(call)
    into = f"{table} ({columns})" if columns else table
    query = f"COPY {into} FROM STDIN WITH (FORMAT csv, HEADER {str(has_header).lower()})"
    line = f"psql {call.word(call.required('dsn'))} --no-psqlrc --quiet --set=ON_ERROR_STOP=1"
    return f'{line} --command="{query}" < {call.word(file)}'


def _postgres(call: Call) -> str:
    query, form = _query(call)
    if not query:
        return _copied(call)
    words = [f"psql {call.word(call.required('dsn'))} --no-psqlrc --quiet --set=ON_ERROR_STOP=1"]
    if truth_of(call.settings.get("transaction")):
        words.append("--single-transaction")
    for name, value in _given(call):
        variable = f"p{name}" if name.isdecimal() else name
        words.append(f"--set={call.word(f'{variable}={value}')}")
        if name.isdecimal():
            query = re.sub(rf"\${name}(?!\d)", f":'{variable}'", query)
        else:
            query = re.sub(rf"(?<![:\w']):{re.escape(name)}\b", f":'{variable}'", query)
    if form == "csv":
        words.append("--csv" if truth_of(call.settings.get("headers")) else "--csv --tuples-only")
    elif _READS.match(query):
        query = query.rstrip().rstrip(";")
        if ";" in query:
            raise call.refuse("rows of several queries as JSON; `output_format: csv` has them")
        inner = "row_to_json(planrun_row)"
        chosen = inner if form == "jsonl" else f"coalesce(json_agg({inner}), '[]')"
        query = f"SELECT {chosen} FROM (\n{query}\n) planrun_row;"  # noqa: S608 - the author's own query
        words.append("--no-align --tuples-only")
    elif re.search(r"\bselect\b|\breturning\b", query, re.IGNORECASE):
        call.reader.found.differs(
            call.code, "rows of several statements are printed as psql prints them", call.node
        )
    query = _locked(call) + query
    return f"{' '.join(words)}{_into(call)} <<{call.document(query)}"


def _sqlite(call: Call) -> str:
    query, form = _query(call)
    path = re.sub(r"^file:", "", call.required("dsn"))
    path, _, options = path.partition("?")
    if not query:
        file, table, columns, has_header = _table(call)
        if columns:
            raise call.refuse("an import of chosen columns")
        skip = "--skip 1 " if has_header else ""
        order = f'.import --csv {skip}"{file}" {table}'
        return f"sqlite3 -batch -bail {call.word(path)} <<{call.document(order)}"
    words = ["sqlite3 -batch -bail"]
    words.append("-readonly" if "mode=ro" in options.split("&") else "")
    words.append({"csv": "-csv", "json": "-json", "jsonl": "-json"}[form])
    words.append("-header" if form == "csv" and truth_of(call.settings.get("headers")) else "")
    lines = [".timeout 5000", "PRAGMA foreign_keys = ON;"]
    for name, value in _given(call):
        label = f"?{name}" if name.isdecimal() else f":{name}"
        lines.append(f".parameter set {label} \"'{value.replace(chr(39), chr(39) * 2)}'\"")
    query = query.rstrip().rstrip(";") + ";"
    lines += ["BEGIN;", query, "COMMIT;"] if truth_of(call.settings.get("transaction")) else [query]
    if truth_of(call.settings.get("sharedmemory")):
        raise call.refuse("a database in memory that steps share")
    line = f"{' '.join(word for word in words if word)} {call.word(path)}"
    if truth_of(call.settings.get("filelock")):
        line = f"flock {call.word(path + '.lock')} {line}"
    document = call.document("\n".join(lines))
    if form != "jsonl":
        return f"{line}{_into(call)} <<{document}"
    call.reader.found.differs(call.code, "rows become lines of JSON by jq, which has to be there", call.node)
    return f"rows=\"$({line} <<{document}\n)\"\nprintf '%s\\n' \"$rows\" | jq -c '.[]'{_into(call)}"


_REDIS = frozenset((
    "url", "host", "port", "password", "username", "db", "tls", "timeout", "maxretries", "command", "key", "keys",
    "value", "values", "field", "fields", "ttl", "nx", "xx", "start", "stop", "outputformat", "nullvalue", "channel",
    "message", "match", "count", "script", "scriptargs", "scriptkeys", "mode", "tlsskipverify", "score", "member",
))  # fmt: skip


_REDIS_OPTIONS = (
    ("url", "-u"), ("host", "-h"), ("port", "-p"), ("username", "--user"), ("password", "--pass"), ("db", "-n"),
)  # fmt: skip


def _redis(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown(_REDIS)
    if settings.text("mode") not in ("", "standalone"):
        raise call.refuse(f"the mode {settings.text('mode')}")
    words = ["redis-cli -e --no-auth-warning"]
    for key, option in _REDIS_OPTIONS:
        if settings.has(key):
            words.append(f"{option} {call.word(settings.text(key))}")
    words.append("--tls" if truth_of(settings.get("tls")) else "")
    words.append("--insecure" if truth_of(settings.get("tlsskipverify")) else "")
    if settings.text("outputformat") in ("", "json"):
        words.append("--json")
    elif settings.text("outputformat") != "raw":
        raise call.refuse(f"results as {settings.text('outputformat')}")
    return " ".join(word for word in [*words, *_redis_words(call)] if word)


def _redis_words(call: Call) -> list[str]:
    settings, reader = call.settings, call.reader
    command = (settings.text("command") or call.op or call.command).strip().upper()
    script = settings.text("script")
    if script and command in ("", "EVAL"):
        keys = reader.texts(settings.first("keys", "scriptkeys"), "`keys`")
        given = reader.texts(settings.first("values", "scriptargs"), "`values`")
        quoted = "'" + script.replace("'", "'\\''") + "'"
        return [f"EVAL {quoted} {len(keys)}", *map(call.word, [*keys, *given])]
    if not re.fullmatch(r"[A-Z]+( [A-Z]+)?", command):
        raise call.refuse("a pipeline, or a command that is worked out")
    words = [command]
    words += [call.word(settings.text(name)) for name in ("key", "channel") if settings.has(name)]
    words += map(call.word, reader.texts(settings.get("keys"), "`keys`"))
    if command == "EXPIRE":
        words.append(call.word(call.required("ttl")))
    words += [
        call.word(settings.text(name)) for name in ("start", "stop", "score", "field") if settings.has(name)
    ]
    fields = settings.get("fields")
    for name, value in fields.value.items() if fields is not None and fields.kind == MAPPING else ():
        words += [call.word(name), call.word(text_of(value))]
    if fields is not None and fields.kind == SEQUENCE:
        words += map(call.word, reader.texts(fields, "`fields`"))
    words += [call.word(settings.text(name)) for name in ("value", "member", "message") if settings.has(name)]
    words += map(call.word, reader.texts(settings.get("values"), "`values`"))
    if settings.has("ttl") and command == "SET":
        words.append(f"EX {call.word(settings.text('ttl'))}")
    words += [name.upper() for name in ("nx", "xx") if truth_of(settings.get(name))]
    for name in ("match", "count"):
        if settings.has(name):
            words.append(f"{name.upper()} {call.word(settings.text(name))}")
    return words


_S3 = frozenset((
    "region", "endpoint", "accesskeyid", "secretaccesskey", "sessiontoken", "profile", "forcepathstyle", "bucket",
    "key", "source", "destination", "contenttype", "storageclass", "metadata", "tags", "prefix", "quiet", "recursive",
    "maxkeys", "outputformat", "disablessl", "serversideencryption", "acl",
))  # fmt: skip


_S3_VARIABLES = (
    ("accesskeyid", "AWS_ACCESS_KEY_ID"),
    ("secretaccesskey", "AWS_SECRET_ACCESS_KEY"),
    ("sessiontoken", "AWS_SESSION_TOKEN"),
)
_S3_OPTIONS = (
    ("contenttype", "content-type"), ("storageclass", "storage-class"), ("acl", "acl"), ("serversideencryption", "sse"),
)  # fmt: skip


def _s3(call: Call) -> str:
    settings = call.settings
    settings.refuse_unknown(_S3)
    variables = []
    for key, name in _S3_VARIABLES:
        if settings.has(key):
            variables.append(f"{name}={call.word(settings.text(key))}")
    options = ""
    for key, option in (("region", "region"), ("endpoint", "endpoint-url"), ("profile", "profile")):
        if settings.has(key):
            options += f" --{option} {call.word(settings.text(key))}"
    bucket = call.required("bucket")
    return " ".join([*variables, _s3_command(call, bucket, options)])


def _s3_command(call: Call, bucket: str, options: str) -> str:
    settings, op = call.settings, call.op or call.command.strip()
    if op == "upload":
        for key, option in _S3_OPTIONS:
            if settings.has(key):
                options += f" --{option} {call.word(settings.text(key))}"
        pairs = ",".join(f"{name}={value}" for name, value in call.pairs("metadata"))
        options += f" --metadata {call.word(pairs)}" if pairs else ""
        if settings.has("tags"):
            raise call.refuse("tags of an object")
        target = f"s3://{bucket}/{call.required('key')}"
        return f"aws s3 cp{options} {call.word(call.required('source'))} {call.word(target)}"
    if op == "download":
        source = f"s3://{bucket}/{call.required('key')}"
        return f"aws s3 cp{options} {call.word(source)} {call.word(call.required('destination'))}"
    if op == "delete":
        if settings.has("prefix"):
            target = f"s3://{bucket}/{settings.text('prefix')}"
            return f"aws s3 rm --recursive{options} {call.word(target)}"
        target = f"s3://{bucket}/{call.required('key')}"
        return f"aws s3 rm{options} {call.word(target)}"
    if op == "list":
        if settings.has("prefix"):
            options += f" --prefix {call.word(settings.text('prefix'))}"
        options += f" --max-items {call.word(settings.text('maxkeys') or '1000')}"
        message = "objects are listed in the JSON of the AWS command"
        call.reader.found.differs(call.code, message, call.node)
        return f"aws s3api list-objects-v2 --bucket {call.word(bucket)}{options} --query Contents"
    raise call.refuse(f"s3 {op}")


STORES: dict[str, Callable[[Call], str]] = {
    "postgres": _postgres,
    "redis": _redis,
    "s3": _s3,
    "sqlite": _sqlite,
}
