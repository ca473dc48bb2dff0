"""Words of other tools, and what planrun calls each of them.

GitHub Actions, GitLab CI, CircleCI, Azure Pipelines, Drone, Woodpecker, Buildkite, Bitbucket, Jenkins, Taskfile, Dagu,
Airflow, Compose.
"""

from __future__ import annotations

from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

# What a tool writes -> how it is written here: a key of the same place, or a sentence. Words are in lower case, without
# `-` and `_`. Asked before the nearest known key, which is often a wrong guess for a word of another tool.
_TOLERATE = "write `on_failure: continue`"
_AROUND = "put its commands into `run`, or into steps before and after this one"
_FINALLY = "put the step under `finally:` at the top level"
_NO_RUNNER = (
    "planrun runs on one machine: choose it in the CI system, or an image by `container`; on a cluster (`--executor`) "
    "`runs_on` names labels of workers"
)
_EXECUTOR = "a plan never chooses where it runs: use the option `--executor`"
_TRIGGER = "planrun has no triggers; the CI system starts it"
_NO_SCHEDULER = "planrun has no scheduler; start it from cron or a scheduled CI pipeline"
_APPROVAL = "write `policy: {auto_approve: low}`, or a step with `ask`"
_DEFAULTS = "write it under `defaults`"
_REF = "did you mean \"condition\"? It is one expression, e.g. `condition: run.ref == 'main'`"
_WHEN = "did you mean \"condition\"? It is one expression, e.g. `condition: run.event == 'push'`"
_CHECK_FIRST = "write a step before it, e.g. `validate: [{files_exist: [Makefile]}]`, and depend on it"
_PRODUCES = 'did you mean "produces"? e.g. `produces: dist/*.whl`'
_USES = "`uses: ./other.yml` runs another plan as one step"
_CONTAINER = "write `container: {image: alpine}`"
_IN_EACH = "write it in each step, e.g. "
_SECRETS = "`secrets: [NAME]` at the top level declares a secret, and in a step it passes it to the step"

STEP: dict[str, str] = {
    # What a step waits for, and whether it runs.
    **dict.fromkeys(
        ("needs", "need", "depends", "dependson", "dependencies", "deps", "requires", "after"), "depends_on"
    ),
    **dict.fromkeys(("if", "onlyif", "enabled"), "condition"),
    **dict.fromkeys(("when", "unless", "rules", "workflowrules"), _WHEN),
    **dict.fromkeys(("only", "except", "branch", "branches", "refs", "filters"), _REF),
    **dict.fromkeys(("preconditions", "precondition", "prerequisites", "requirements"), _CHECK_FIRST),
    "triggerrule": "write how each step must have ended, e.g. `depends_on: {build: done}`",
    "stage": "order steps by `depends_on`; a stage has no other meaning here",
    "stages": "order steps by `depends_on`; a stage has no other meaning here",
    "before": "write `depends_on` in the other step",
    "always": _FINALLY,
    "alwaysrun": _FINALLY,
    "status": "cache",
    **dict.fromkeys(("runonce", "once"), "every step runs once"),
    # What a step does.
    **dict.fromkeys(
        (
            "cmd",
            "cmds",
            "command",
            "commands",
            "script",
            "shellcommand",
            "bash",
            "bashcommand",
            "call",
            "exe",
        ),
        "run",
    ),
    **dict.fromkeys(("sh", "shellscript"), "run"),
    "pythoncallable": "write `shell: python` and `run`",
    "makefile": "write `run: make test`",
    "target": "write `run: make test`",
    "pwsh": "write `shell: pwsh` and `run`",
    "powershell": "write `shell: pwsh` and `run`",
    "python": "write `shell: python` and `run`",
    "argv": "exec",
    "entrypoint": "exec",
    "action": "a step has one of run, exec, tool, validate, decide, ask, agent, uses",
    "type": "a step has one of run, exec, tool, validate, decide, ask, agent, uses",
    **dict.fromkeys(
        ("task", "taskref", "workflow", "trigger", "include", "import", "pipe", "orb", "plugins"), _USES
    ),
    **dict.fromkeys(("jobs", "tasks", "stepsof"), "a step has no steps of its own; put them beside it"),
    "on": "planrun has no triggers; to run a step for some events, `condition: run.event == 'push'`",
    "template": "`uses: ./other.yml` runs another plan; `planrun templates render` makes one of a template",
    "extends": "`extends` is a key of the plan, at the top level",
    "checks": "validate",
    "input": "ask",
    "prompt": "write `ask: {question: ...}`, or `agent: {prompt: ...}`",
    "approval": _APPROVAL,
    "approve": _APPROVAL,
    "approvers": _APPROVAL,
    "requireapproval": _APPROVAL,
    "manual": _APPROVAL,
    "confirm": _APPROVAL,
    "params": "with",
    "parameters": "with",
    "arguments": "args",
    "steps": "a step has no steps of its own; put them beside it",
    "beforescript": _AROUND,
    "afterscript": _AROUND,
    "post": "put the step under `finally:` at the top level; after a failure only, `depends_on: {ID: failed}`",
    "handleron": "`depends_on: {ID: failed}` runs a step after a failure, `finally:` runs it at every end",
    "delay": "write `run: sleep 5`; between attempts `retries: {max: 2, backoff: {initial: 5s}}`",
    "wait": "write `run: sleep 5`, or wait for another step by `depends_on`",
    "sleep": "write `run: sleep 5`",
    "repeatpolicy": "a step is not repeated after success; loop inside `run`, or use `foreach`",
    "healthcheck": "write `service: true` and `ready: {run: ...}`",
    "services": "a service is a step of its own, with `service: true`; it runs while other steps depend on it",
    **dict.fromkeys(
        ("detach", "background", "daemon", "runinbackground", "runasdaemon"),
        "write `service: true`; the step runs while other steps depend on it",
    ),
    "ports": "write it for a step with `service: true`: containers share the host's network by `network: host`",
    "restart": "a service is started once; a resumed run starts it again",
    # Failure and time.
    **dict.fromkeys(("maxretries", "retry", "attempts", "retrypolicy", "retrycountontaskfailure"), "retries"),
    "retrydelay": "write `retries: {max: 2, backoff: {initial: 5s}}`",
    "continueonerror": _TOLERATE,
    "continueon": _TOLERATE,
    **dict.fromkeys(("allowfailure", "softfail", "failure", "ignorefailure", "ignoreexitcode"), _TOLERATE),
    "ignoreerrors": _TOLERATE,
    "ignoreerror": _TOLERATE,
    "onerror": "on_failure",
    "onfail": "on_failure",
    "failfast": "write it inside `matrix` or `foreach`",
    "timeoutminutes": "write `timeout: 10m`",
    "timeoutinminutes": "write `timeout: 10m`",
    "timeoutseconds": "write `timeout: 30s`",
    "timeoutms": "write `timeout: 500ms`",
    **dict.fromkeys(("executiontimeout", "maxtime", "timelimit", "deadline", "timeoutsec"), "timeout"),
    "nooutputtimeout": "idle_timeout",
    "schedule": "write it at the top level, as the order of all steps; planrun has no scheduler",
    "interruptible": "every step ends when the run is cancelled",
    "criticality": "risk",
    "undo": "rollback",
    "revert": "rollback",
    **dict.fromkeys(("concurrency", "concurrencygroup"), "lock"),
    "resourcegroup": "lock",
    "mutex": "lock",
    # Surroundings.
    **dict.fromkeys(("workingdirectory", "workingdir", "cwd", "dir", "directory"), "workdir"),
    **dict.fromkeys(("variables", "vars", "envs", "environmentvariables", "envvars"), "env"),
    **dict.fromkeys(("envfrom", "secret", "secretref"), _SECRETS),
    "settings": "with",
    "environment": "`env` sets variables; to control who may deploy, use `policy` or a step with `ask`",
    "dotenv": "env_file",
    "image": _CONTAINER,
    "docker": _CONTAINER,
    "containers": _CONTAINER,
    "build": "build the image in an earlier step by `run`, then name it by `container: {image: alpine}`",
    "volumes": "write it under `container`, e.g. `container: {image: alpine, volumes: [./data:/data]}`",
    "networks": "write it under `container`, e.g. `container: {image: alpine, network: none}`",
    "network": "write it under `container`, e.g. `container: {image: alpine, network: none}`",
    "user": "write it under `container`, e.g. `container: {image: alpine, user: root}`",
    "privileged": "planrun starts no privileged containers; run the command on the machine itself",
    "runson": _NO_RUNNER,
    **dict.fromkeys(("pool", "agents", "node", "nodeselector", "runner", "queue"), _NO_RUNNER),
    "machine": _NO_RUNNER,
    "executor": _EXECUTOR,
    "resourceclass": _NO_RUNNER,
    "platforms": _NO_RUNNER,
    "permissions": "the CI system gives permissions to its job; a step sees the `secrets` that it lists",
    # Instances.
    "strategy": "write `matrix` in the step itself, e.g. `matrix: {python: ['3.12', '3.13']}`",
    **dict.fromkeys(("loop", "withitems", "for", "items", "each", "expand"), "foreach"),
    "maxparallel": "write it inside `matrix` or `foreach`; for the whole plan under `limits`",
    "maxconcurrent": "write `max_parallel` inside `matrix` or `foreach`",
    "parallelism": "write `max_parallel` inside `matrix` or `foreach`",
    # Files and words.
    **dict.fromkeys(
        ("artifacts", "artifactpaths", "storeartifacts", "persisttoworkspace", "publish", "uploadartifact"),
        _PRODUCES,
    ),
    **dict.fromkeys(
        ("attachworkspace", "download", "downloadartifact"), "steps share one folder; name files by `inputs`"
    ),
    **dict.fromkeys(("generates", "creates"), "produces"),
    **dict.fromkeys(
        ("checkout", "clone", "git"), "planrun starts in the checkout; a step needs none of its own"
    ),
    "sources": "inputs",
    "savecache": "cache",
    "restorecache": "cache",
    "output": "outputs",
    "stdout": "write `> file` in `run`; the output is kept in the run's logs",
    "stderr": "write `2> file` in `run`; the output is kept in the run's logs",
    "silent": "the output of every step goes to its log",
    "coverage": "write it to a file that `produces` names",
    "testresults": "reports",
    "storetestresults": "reports",
    **dict.fromkeys(
        ("name", "stepname", "stepsname"),
        "write `id: build` for other steps to refer to, and `title: Build` for people",
    ),
    **dict.fromkeys(("key", "taskid", "identifier", "jobid"), "id"),
    **dict.fromkeys(("quiet", "echo", "logging", "loglevel"), "the output of every step goes to its log"),
    "envfile": "env_file",
    "displayname": "title",
    "label": "title",
    "desc": "description",
    "summary": "description",
    "comment": "notes",
    "labels": "tags",
    **dict.fromkeys(("successcriteria", "acceptancecriteria", "acceptance", "definitionofdone"), "criteria"),
}
PLAN: dict[str, str] = {
    **dict.fromkeys(
        ("jobs", "tasks", "stages", "pipeline", "pipelines", "workflow", "job"),
        'did you mean "steps"? It is a list, e.g. `steps: [{id: build, run: make}]`',
    ),
    **dict.fromkeys(
        (
            "notifications",
            "notification",
            "notifiers",
            "slack",
            "webhook",
            "webhooks",
            "alerts",
            "mailon",
            "email",
        ),
        'did you mean "notify"? It is a list, e.g. `notify: [{slack: {url_secret: SLACK_URL}, on: failed}]`',
    ),
    "workflows": "a file holds one plan, with its `steps`",
    "stage": "order steps by `depends_on`; a stage has no other meaning here",
    "title": "name",
    "runname": "name",
    **dict.fromkeys(("dag", "dagid", "id"), "name"),
    "desc": "description",
    "summary": "description",
    **dict.fromkeys(("variables", "environment", "envs"), "env"),
    "vars": "variables belong to templates; a plan has `params`",
    **dict.fromkeys(("inputs", "parameters", "arguments"), "params"),
    "dotenv": "env_file",
    **dict.fromkeys(("always", "after", "cleanup", "teardown", "post"), "finally"),
    "default": "defaults",
    **dict.fromkeys(("on", "true", "trigger", "triggers", "pr", "push"), _TRIGGER),
    **dict.fromkeys(("schedules", "cron", "crontab", "skipifsuccessful"), _NO_SCHEDULER),
    **dict.fromkeys(
        ("run", "exec", "script", "cmd", "command", "commands", "cmds", "bash"),
        "a plan's commands are in its steps, e.g. `steps: [{id: build, run: make}]`",
    ),
    **dict.fromkeys(
        ("needs", "deps", "depends", "requires", "dependencies"), _IN_EACH + "`depends_on: [build]`"
    ),
    **dict.fromkeys(
        ("if", "when", "condition", "preconditions"), _IN_EACH + "`condition: run.event == 'push'`"
    ),
    **dict.fromkeys(("only", "except", "branches"), _IN_EACH + "`condition: run.ref == 'main'`"),
    **dict.fromkeys(("allowfailure", "ignoreerror"), "write `defaults: {on_failure: continue}`"),
    **dict.fromkeys(("uses", "with"), "a step with `uses: ./other.yml` runs another plan"),
    **dict.fromkeys(
        ("sources", "generates"), "write it in each step: `inputs: src/**` and `produces: dist/*`"
    ),
    "foreach": "write `foreach` in each step that has instances",
    "interruptible": "every run can be cancelled; nothing has to be set",
    "parallel": "steps run in parallel unless they depend on each other; `limits: {max_parallel: 4}` bounds it",
    **dict.fromkeys(("defaultargs",), "defaults"),
    **dict.fromkeys(("startdate", "catchup", "enddate"), _NO_SCHEDULER),
    **dict.fromkeys(("clone", "checkout"), "planrun starts in the checkout; nothing has to be set"),
    **dict.fromkeys(
        ("method", "silent", "output", "interval", "set", "shopt"), "planrun has no such key; remove it"
    ),
    "shell": _DEFAULTS,
    "timeout": "`limits: {deadline: 1h}` bounds the run, `defaults: {timeout: 10m}` each step",
    "timeoutinminutes": "`limits: {deadline: 1h}` bounds the run, `defaults: {timeout: 10m}` each step",
    "timeoutminutes": "`limits: {deadline: 1h}` bounds the run, `defaults: {timeout: 10m}` each step",
    "timeoutsec": "`limits: {deadline: 1h}` bounds the run, `defaults: {timeout: 10m}` each step",
    **dict.fromkeys(("maxactiveruns", "maxactivesteps", "parallelism"), "write `limits: {max_parallel: 4}`"),
    **dict.fromkeys(
        (
            "retries",
            "retry",
            "shell",
            "workdir",
            "workingdirectory",
            "inheritenv",
            "idletimeout",
            "errors",
            "trackfiles",
        ),
        _DEFAULTS,
    ),
    "onfailure": "`defaults: {on_failure: ...}` sets what a failure means for every step; steps that run after a "
    "failure are listed under `finally:`, or have `depends_on: {ID: failed}`",
    "handleron": "steps that run at the end are listed under `finally:`; after a failure, `depends_on: {ID: failed}`",
    "onerror": "`defaults: {on_failure: ...}` sets what a failure means for every step",
    "continueonerror": "write `defaults: {on_failure: continue}`",
    "beforescript": "make it the first step and let the others depend on it",
    "afterscript": "write a step under `finally:`",
    "include": "a step with `uses: ./other.yml` runs another plan",
    "includes": "a step with `uses: ./other.yml` runs another plan",
    "imports": "a step with `uses: ./other.yml` runs another plan",
    "orbs": "a step with `uses: ./other.yml` runs another plan",
    "services": "a service is a step, e.g. `steps: [{id: db, service: true, run: ./db}]`, and others depend on it",
    **dict.fromkeys(("image", "container", "docker"), _IN_EACH + "`container: {image: alpine}`"),
    **dict.fromkeys(
        ("volumes", "networks"), _IN_EACH + "`container: {image: alpine, volumes: [./data:/data]}`"
    ),
    "cache": _IN_EACH + "`cache: true`",
    **dict.fromkeys(("artifacts", "artifactpaths"), _IN_EACH + "`produces: dist/*`"),
    **dict.fromkeys(("matrix", "strategy"), _IN_EACH + "`matrix: {python: ['3.12', '3.13']}`"),
    **dict.fromkeys(
        ("pool", "agent", "runson", "resources", "executors", "machine", "platform", "platforms", "vmimage"),
        _NO_RUNNER,
    ),
    "executor": _EXECUTOR,
    "permissions": "the CI system gives permissions to its job; a step sees the `secrets` that it lists",
    "approval": "write `policy: {auto_approve: low}`, or a step with `ask`",
    "approvals": "write `policy: {auto_approve: low}`, or a step with `ask`",
    "approvers": "write `policy: {auto_approve: low}`, or a step with `ask`",
    "tags": "write `tags` in each step",
    "labels": "write `tags` in each step",
    "dependson": "write `depends_on` in each step; `planrun queue add --after` makes a plan wait for another one",
    "delay": "planrun starts at once; `planrun queue` keeps plans for later",
    "logdir": "use the option `--report-dir`",
    "histretentiondays": "`planrun prune` removes old runs",
    "schema": "$schema",
    "kind": "a plan has no kind; begin it with `version: 1`",
    "apiversion": "write `version: 1`",
    "metadata": "write `name` and `description` at the top level",
    "spec": "write `steps` at the top level",
}
_RETRIES = {
    **dict.fromkeys(("attempts", "count", "limit", "times", "retries", "maxattempts", "maxretries"), "max"),
    **dict.fromkeys(
        ("delay", "interval", "wait", "intervalsec", "initial", "factor", "jitter"),
        "write `backoff: {initial: 5s}`",
    ),
    **dict.fromkeys(("when", "if", "exitcode", "exitcodes", "errors"), "on"),
}
_BOUNDS = {
    "min": "minimum",
    "max": "maximum",
    "choices": "enum",
    "options": "enum",
    "values": "enum",
    "regex": "pattern",
}
_INSTANCES = {
    **dict.fromkeys(
        ("maxconcurrent", "parallel", "parallelism", "concurrency", "maxparallelism"), "max_parallel"
    ),
    "continueonerror": "fail_fast",
}
_DEFAULT_WORDS = {
    word: meant
    for word, meant in STEP.items()
    if meant in ("retries", "on_failure", "workdir", "rollback", "idle_timeout", "timeout")
    or meant.startswith(("write `on_failure", "write `timeout", "write `retries", "write `shell"))
} | {
    **dict.fromkeys(("variables", "vars", "envs", "environment", "env"), "write `env` at the top level"),
    **dict.fromkeys(("dotenv", "envfile"), "write `env_file` at the top level"),
    "maxparallel": "write `limits: {max_parallel: 4}` at the top level",
    "loginshell": "shell",
    **dict.fromkeys(("image", "container"), _IN_EACH + "`container: {image: alpine}`"),
    "tags": "write `tags` in each step",
}
FOREIGN: dict[str, dict[str, str]] = {
    "Plan": PLAN,
    "Step": STEP,
    "Defaults": _DEFAULT_WORDS,
    "RetryPolicy": _RETRIES,
    "Backoff": {
        "delay": "initial",
        "interval": "initial",
        "multiplier": "factor",
        "base": "factor",
        "cap": "max",
    },
    "Limits": {
        "timeout": "deadline",
        "maxtime": "deadline",
        **dict.fromkeys(
            ("parallel", "concurrency", "maxconcurrency", "jobs", "maxparallelsteps"), "max_parallel"
        ),
        "maxcost": "max_usd",
        "budget": "max_usd",
        "tokens": "max_tokens",
        "steps": "max_steps",
        "maxretries": "write `defaults: {retries: 2}`",
    },
    "ForEach": {
        **dict.fromkeys(("in", "list", "over", "values"), "items"),
        **dict.fromkeys(("as", "var", "name"), "each entry is `${{ item }}`"),
        **_INSTANCES,
    },
    "Container": {
        "name": "image",
        "environment": "env",
        **dict.fromkeys(("mounts", "volume", "binds"), "volumes"),
        **dict.fromkeys(("networks", "networkmode"), "network"),
        **dict.fromkeys(
            ("ports", "expose", "publish"), "a container shares the host's ports by `network: host`"
        ),
        **dict.fromkeys(("workingdir", "workdir", "dir"), "write `workdir` in the step"),
        **dict.fromkeys(("command", "entrypoint", "run", "args", "cmd"), "write `run` or `exec` in the step"),
        **dict.fromkeys(("credentials", "auth"), "log in before the run, e.g. by `docker login`"),
        "options": "planrun has keys for `env`, `volumes`, `user` and `network` only",
        "pull": "planrun pulls an image that the machine does not have",
        "build": "build the image in an earlier step by `run`",
    },
    "Param": {**_BOUNDS, "optional": "required", "help": "description"},
    "Value": _BOUNDS,
    "Ask": {**_BOUNDS, "message": "question", "text": "question", "prompt": "question", "title": "header"},
    "Decide": {"message": "question", "text": "question", "choices": "options", "multiple": "multi_select"},
    "Option": {"name": "label", "title": "label", "id": "value", "if": "when", "condition": "when"},
    "Agent": {"kind": "type", "task": "prompt", "instructions": "prompt", "maxsteps": "max_turns"},
    "Cache": {
        "paths": "`cache` names what the result depends on; `produces` names the files that are kept",
        "path": "`cache` names what the result depends on; `produces` names the files that are kept",
        "files": "inputs",
    },
    "Ready": {"command": "run", "test": "run", "cmd": "run", "delay": "interval"},
    "Notification": {
        **dict.fromkeys(
            ("url", "uri", "http", "post", "address", "discord", "mattermost", "teams"), "webhook"
        ),
        **dict.fromkeys(("run", "exec", "script", "cmd", "args", "shell"), "command"),
        **dict.fromkeys(("when", "events", "event", "if", "condition"), "on"),
        **dict.fromkeys(("mail", "email"), "send mail by a command, e.g. `command: [./scripts/mail.sh]`"),
        "token": "secret_headers",
        "urlsecret": "write it below the kind, e.g. `slack: {url_secret: SLACK_URL}`",
        "channel": 'write it below `slack`, e.g. `slack: {url_secret: SLACK_URL, channel: "#ci"}`',
        "secret": "sign",
        "type": "the key is the kind, e.g. `webhook: https://ci.example.com/hooks`",
    },
    "Policy": {"approve": "auto_approve", "allow": "rules", "deny": "rules", "require": "rules"},
}
# (key, kind of node found) -> how to write it; a step itself has the key "".
TYPE_HINTS: dict[tuple[str, int], str] = {
    ("", SCALAR): "write `- run: ...`",
    ("", SEQUENCE): "write each step as `- id: ...` with its keys below",
    ("steps", MAPPING): "write each step as `- id: ...` with its keys below",
    ("finally", MAPPING): "write each step as `- id: ...` with its keys below",
    ("run", SEQUENCE): "write `run: |` with one command per line below it",
    ("run", MAPPING): "quote text that contains `: ` or begins with {",
    ("exec", SCALAR): "write the program and each argument as an entry of a list, or use `run`",
    ("env", SEQUENCE): "write `NAME: value`, one per line",
    ("validate", MAPPING): "write a list: begin each check with `- `",
    ("expect", MAPPING): "write a list: begin each check with `- `",
    ("condition", SEQUENCE): "write one expression; join conditions by `and`",
    ("title", MAPPING): "quote text that contains `: `",
    ("name", MAPPING): "quote text that contains `: `",
    ("params", SEQUENCE): "write each as `name: {type: string}`",
    ("outputs", SEQUENCE): "write each as `name: string`",
    ("timeout", MAPPING): "write a duration such as 30s",
}
# Words that people write for a value -> the word of planrun, if that is among those of the place.
VALUES = {
    **dict.fromkeys(("ignore", "warn", "tolerate", "true", "allow"), "continue"),
    **dict.fromkeys(("stop", "fail", "fail-fast", "exit"), "abort"),
    **dict.fromkeys(("text", "str"), "string"),
    "int": "integer",
    **dict.fromkeys(("float", "decimal", "double"), "number"),
    "bool": "boolean",
    **dict.fromkeys(("list", "tuple", "sequence"), "array"),
    **dict.fromkeys(("dict", "map", "mapping", "hash"), "object"),
    **dict.fromkeys(("no", "never", "off", "false"), "none"),
    "readonly": "read-only",
    "serial": "sequential",
    "parallel": "dag",
}
