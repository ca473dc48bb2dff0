"""`actions/github-script` as a script of node, with the packages that the action itself is made of."""

from __future__ import annotations

from planrun.convert.reader import UntranslatableError
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.convert.github.programs import Inputs

NEEDS = "node and the packages @actions/core@1, github@6, exec@1, glob@0.5 and io@1 (by npm install)"
_SCRIPT = """\
node - <<'PLANRUN_SCRIPT'
const core = require('@actions/core');
const {{ getOctokit, context }} = require('@actions/github');
const github = getOctokit(process.env.GH_TOKEN), octokit = github;
const exec = require('@actions/exec'), glob = require('@actions/glob'), io = require('@actions/io');
(async () => {{
{script}
}})().then(
  (result) => {{ if (result !== undefined) core.setOutput('result', {shown}); }},
  (error) => {{ console.error(error); core.setFailed(`Unhandled error: ${{error}}`); }},
);
PLANRUN_SCRIPT"""


def script(inputs: Inputs) -> str:
    """Return the script for what the action is given; raises UntranslatableError."""
    node = inputs.node("github-token")
    inputs.env["GH_TOKEN"] = node or Node(SCALAR, "${{ github.token }}", 1, 1)
    inputs.drop("debug", "retries", "retry-exempt-status-codes", "user-agent", "base-url")
    text = inputs.take("script")
    encoding = inputs.take("result-encoding", "json")
    for word in ("exportVariable", "addPath", "saveState", "__original_require__"):
        if word in text:
            raise UntranslatableError("", f"its script calls `{word}`, which nothing reads here")
    if not text or "${{" in encoding:
        raise UntranslatableError("", "it has no script, or a result whose form is worked out")
    shown = "String(result)" if encoding == "string" else "JSON.stringify(result)"
    body = _SCRIPT.format(script=text, shown=shown)
    head = '[ -z "${GITHUB_OUTPUT:-}" ] || : >> "$GITHUB_OUTPUT"  # core.setOutput writes to a file that is there\n'
    if "core.summary" in text:
        head += 'export GITHUB_STEP_SUMMARY="${GITHUB_STEP_SUMMARY:-/dev/null}"\n'
    return f"{head}{body}"
