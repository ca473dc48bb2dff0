"""The order of the jobs of a GitLab CI file, and the conditions under which each runs."""

from __future__ import annotations

from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.gitlab.conditions import condition_of, exists, ref_of
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.convert.gitlab.job import Job
    from planrun.convert.gitlab.pipeline import Pipeline

_OF_RULE = frozenset(("if", "when", "changes", "exists", "allow_failure", "interruptible"))
_TESTS = frozenset(("if", "changes", "exists"))
_REPORT = (
    "the scripts of later jobs read the file of a `dotenv` report in the workspace, if it is there; `image` and "
    "`variables` do not see what it sets"
)
_READ_FILE = """\
if [ -f "{0}" ]; then while IFS= read -r line || [ -n "$line" ]; do
  case $line in [A-Za-z_]*=*) export "$line" ;; esac
done < "{0}"; fi
"""


class Edges:
    """Makes the steps of the jobs, and gives them their edges and conditions."""

    def __init__(self, pipeline: Pipeline, jobs: Mapping[str, Job]) -> None:
        self.pipeline, self.plan, self.jobs = pipeline, pipeline.plan, jobs
        self.whens: dict[str, str] = {}
        self.optional: set[str] = set()  # manual jobs for which later stages do not wait
        self.doubtful: set[str] = set()  # jobs that a condition may leave out
        self.reports: dict[str, list[str]] = {}  # files with variables for later jobs

    def link(self, chosen: Sequence[str]) -> list[DraftStep]:
        """Return the steps of the chosen jobs, by their stages."""
        stages = {stage: at for at, stage in enumerate(self.pipeline.stages)}
        self.chosen = sorted(chosen, key=lambda name: stages.get(self.jobs[name].stage, 0))
        for name in self.chosen:
            job = self.jobs[name]
            lost = [other for other, may in job.needs() or () if other not in self.chosen and not may]
            if job.unfit is None and lost and not self.pipeline.left:
                job.unfit = UntranslatableError(
                    "needs", f"it needs `{lost[0]}`, which is no job of this file"
                )
            if job.unfit is None and job.stage not in stages:
                job.unfit = UntranslatableError("stage", f'there is no stage "{job.stage}"')
            self.whens[name] = "on_success"
            job.make()
            try:
                self._report(name, job)
                if "run" in job.step.keys:
                    self._start(name, job)
            except UntranslatableError as why:
                job.leave(why)
            asks = job.members.get("environment") is not None or text_of(job.members.get("when")) == "manual"
            if asks and "run" not in job.step.keys:
                self._gate(job, f"Run the job {literal_text(name)}?", "")
        for name in self.chosen:
            self._connect(name, self.jobs[name])
        return [step for name in self.chosen for step in self.jobs[name].steps]

    def _start(self, name: str, job: Job) -> None:
        """Say when a job starts, and who is asked before; raises UntranslatableError."""
        step, rules = job.step, job.members.get("rules")
        when, manual = text_of(job.members.get("when")) or "on_success", ""
        if rules is not None and not is_nothing(rules):
            when, manual = self._rules(name, rules, job)
        else:
            step.demand(self._refs(job, "only", " and "))
            unwanted = self._refs(job, "except", " or ")
            step.demand(f"not ({unwanted})" if unwanted else "")
            if when == "never":
                step.demand("false")
            if when == "manual":
                manual = step.condition or "true"
                if job.members.get("allow_failure") is None:
                    step.keys["on_failure"] = "continue"
                    self.optional.add(name)
                elif step.keys.get("on_failure") == "continue":
                    self.optional.add(name)
        if when not in ("on_success", "always", "on_failure", "never", "manual"):
            raise UntranslatableError("when", f"`when: {when}`")
        self.whens[name] = when
        question = job.question()
        if manual and not question:
            job.found.differs("manual", f"the manual job {name} is a question before it", job.place("when"))
        if question or manual:
            text = question or f"Run the manual job {literal_text(name)}?"
            gate = self._gate(job, text, step.condition if question else manual)
            if name in self.optional and not question:  # the pipeline is green without it
                gate.keys["ask"]["type"] = "boolean"
                step.demand(f"default({step_path(gate.id, 'outputs')}.answer, false)")
        if step.condition not in ("", "true"):
            self.doubtful.add(name)

    def _gate(self, job: Job, question: str, condition: str) -> DraftStep:
        gate = DraftStep(self.plan.name(f"{job.step.id}.approve"), ask={"question": question})
        gate.node, gate.condition = job.step.node, condition
        job.steps.insert(-1, gate)
        return gate

    def _report(self, name: str, job: Job) -> None:
        """Read which files with variables a job makes for later ones; raises UntranslatableError."""
        artifacts = job.reader.mapping(job.members.get("artifacts"), "`artifacts`")
        reports = job.reader.mapping(artifacts.get("reports"), "`reports`")
        files = job.reader.texts(reports.get("dotenv"), "`dotenv`")
        if not files:
            return
        self.reports[name] = files
        job.found.differs("dotenv", _REPORT, job.place("artifacts"))
        others = {each for other in self.reports if other != name for each in self.reports[other]}
        is_double = "matrix" in job.step.keys or bool(others & set(files))
        if "run" in job.step.keys and (is_double or "$" in str(files)):
            raise UntranslatableError(
                "dotenv", "several jobs write the same `dotenv` report, or a variable names it"
            )

    def _connect(self, name: str, job: Job) -> None:
        """Give the steps of a job their edges."""
        when = self.whens[name]
        is_waiting = when in ("always", "on_failure")
        before = self._before(name, job, is_waiting=is_waiting)
        for step in job.steps:
            for other, is_strict in before:
                needed = self.jobs[other].step
                strict = is_strict and other in self.doubtful and not is_waiting
                # Its failure does not count; that it is left out does.
                if strict and "on_failure" in needed.keys:
                    step.demand(f"{step_path(needed.id, 'status')} != 'skipped'")
                    strict = False
                kind = "done" if is_waiting else "completed" if strict else "ok"
                for each in self.jobs[other].steps if is_waiting else self.jobs[other].steps[-1:]:
                    step.wait(each.id, kind)
            for each in self.pipeline.left if not before else ():
                step.wait(each.id)
            if when == "on_failure":
                failed = [
                    f"{step_path(each.id, 'status')} == 'failed'"
                    for other, _ in before
                    for each in self.jobs[other].steps
                    if "on_failure" not in self.jobs[other].step.keys
                ]
                step.demand(" or ".join(failed) or "false")
            if step is not job.step:
                job.step.wait(step.id)
        wanted = job.members.get("dependencies")
        sources = [other for other in self.reports if other in self._earlier(job)]
        if wanted is not None:
            sources = [other for other in sources if other in job.reader.texts(wanted, "`dependencies`")]
        for node in job.reader.items(job.members.get("needs"), "`needs`"):
            if node.kind == MAPPING and truth_of(node.get("artifacts")) is False:
                sources = [other for other in sources if other != text_of(node.get("job"))]
        files = [file for other in sources for file in self.reports[other]]
        if files and "run" in job.step.keys:
            job.step.keys["run"] = "".join(map(_READ_FILE.format, files)) + job.step.keys["run"]

    def _earlier(self, job: Job) -> set[str]:
        """Return the jobs whose artifacts one gets."""
        needs = job.needs()
        if needs is not None:
            return {other for other, _ in needs}
        stages = self.pipeline.stages
        before = stages[: stages.index(job.stage)] if job.stage in stages else []
        return {other for other in self.chosen if self.jobs[other].stage in before}

    def _before(self, name: str, job: Job, *, is_waiting: bool) -> list[tuple[str, bool]]:
        """Return the jobs for which one waits, and whether each has to have run; of all stages with `is_waiting`."""
        needs = job.needs()
        if needs is not None:
            return [(other, not may) for other, may in needs if other in self.chosen and other != name]
        stages, found = self.pipeline.stages, []
        for stage in reversed(stages[: stages.index(job.stage)] if job.stage in stages else []):
            here = [
                other
                for other in self.chosen
                if self.jobs[other].stage == stage and other not in self.optional
            ]
            found += [(other, False) for other in here]
            # One that surely runs, and waits for all stages before, stands for these; one with `needs` does not wait.
            if not is_waiting and any(
                other not in self.doubtful
                and self.whens[other] == "on_success"
                and self.jobs[other].members.get("needs") is None
                and "on_failure" not in self.jobs[other].step.keys
                for other in here
            ):
                break
        return found

    def _rules(self, name: str, rules: Node, job: Job) -> tuple[str, str]:
        """Give a job the condition of its rules; returns its `when`, and when a person is asked."""
        items = _flat(rules)
        sure = [at for at, each in enumerate(items) if each.kind == MAPPING and not _TESTS & set(each.value)]
        items = items[: sure[0] + 1] if sure else items  # no rule behind one that always holds is read
        usual = truth_of(job.members.get("allow_failure")) is True
        text = manual = "false"
        whens, tolerant = set(), []
        for rule in reversed(items):
            members = job.reader.mapping(rule, "a rule")
            if others := set(members) - _OF_RULE:
                raise UntranslatableError("rules", f"a rule with `{min(others)}`")
            when = text_of(members.get("when")) or text_of(job.members.get("when")) or "on_success"
            asked = self._asked(members, job)
            text = _either(asked, "false" if when == "never" else "true", text)
            manual = _either(asked, "true" if when == "manual" else "false", manual)
            if when != "never":
                whens.add(when)
                allowed = members.get("allow_failure")
                tolerant.append(usual if allowed is None else truth_of(allowed) is True)
        if len(whens) > 1 and whens != {"on_success", "manual"}:
            raise UntranslatableError(
                "rules", f"rules with `when` of different kinds: {', '.join(sorted(whens))}"
            )
        job.step.keys.pop("on_failure", None)
        if tolerant and all(tolerant):
            job.step.keys["on_failure"] = "continue"
            if whens == {"manual"}:
                self.optional.add(name)
        elif any(tolerant):
            message = f"a failure of {name} always counts, although some of its rules tolerate one"
            job.found.differs("allow-failure", message, job.place("rules"))
        job.step.demand(text)
        return next(iter(whens - {"on_success"} or whens), "never"), manual if "manual" in whens else ""

    def _asked(self, members: Mapping[str, Node], job: Job) -> str:
        """Return what a rule asks for, "" for nothing; raises UntranslatableError."""
        patterns, tests = self.pipeline.patterns, []
        if "if" in members:
            tests.append(condition_of(text_of(members["if"]), job.scope.expression, patterns))
        for key, read in (("changes", patterns.changed), ("exists", exists)):
            if (node := members.get(key)) is not None:
                if node.kind == MAPPING and set(node.value) != {"paths"}:
                    raise UntranslatableError(key, f"a rule with `{key}` and {', '.join(node.value)}")
                tests.append(read(self._paths(node.get("paths") if node.kind == MAPPING else node, job)))
        return tests[0] if len(tests) == 1 else " and ".join(f"({each})" for each in tests)

    def _paths(self, node: Node | None, job: Job) -> list[str]:
        """Return paths with the variables of the file; "" for one that only a run knows."""
        found = [job.scope.expand(each) for each in job.reader.texts(node, "paths")]
        return ["" if "${{" in each else each for each in found]

    def _refs(self, job: Job, key: str, joint: str) -> str:
        """Return the condition under `only` or `except`, "" for none; raises UntranslatableError."""
        node, patterns, parts = job.members.get(key), self.pipeline.patterns, []
        if node is None or is_nothing(node):
            return ""
        members = node.value if node.kind == MAPPING else {"refs": node}
        for name, each in members.items():
            if name == "changes":
                parts.append(patterns.changed(self._paths(each, job)))
            elif name in ("refs", "variables"):
                read = ref_of if name == "refs" else condition_of
                tests = [
                    read(text, job.scope.expression, patterns) for text in job.reader.texts(each, f"`{key}`")
                ]
                parts += (
                    [" or ".join(tests) if len(tests) == 1 else f"({' or '.join(tests)})"] if tests else []
                )
            else:
                raise UntranslatableError("only", f"`{key}` with `{name}`")
        return joint.join(parts)


def _flat(node: Node) -> list[Node]:
    """Return the items of a list and of the lists in it."""
    return [each for item in node.value for each in _flat(item)] if node.kind == SEQUENCE else [node]


def _either(asked: str, yes: str, no: str) -> str:
    """Return a condition that is `yes`, true or false, where one holds, and `no` otherwise, in the shortest words."""
    if not asked:
        return yes
    if yes == "true":
        return asked if no == "false" else "true" if no == "true" else f"{asked} or ({no})"
    return "false" if no == "false" else f"not ({asked})" if no == "true" else f"not ({asked}) and ({no})"
