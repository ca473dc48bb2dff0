"""What policies make of a step: deny before require before allow before the level, and the strictest policy counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.approval.rules import Ceiling, Facts, Layers, decide, in_force
from planrun.model.plan import Step
from planrun.model.policy import Match, Policy, Rule
from planrun.plan.kinds.command import Run

if TYPE_CHECKING:
    from typing import Any


def facts(risk: str = "medium", *commands: str, **fields: Any) -> Facts:
    """What a step is about to do; `commands` are split at blanks, `?` is a word that nobody knows yet."""
    about = {name: fields.pop(name) for name in ("id", "title", "origin", "secrets") if name in fields}
    step = Step(action=Run(script="…"), kind="run", **{"id": "s", **about})
    words = tuple(tuple(None if word == "?" else word for word in text.split(" ")) for text in commands)
    return Facts(step=step, risk=risk, commands=words, text="\n".join(commands), **fields)


def policy(level: str = "high", *rules: tuple[str, dict[str, Any]], **fields: Any) -> Policy:
    """A policy with rules like ("deny", {"step": ("x",)})."""
    made = tuple(
        Rule(verb=verb, match=Match(**match), number=number)  # type: ignore[arg-type]
        for number, (verb, match) in enumerate(rules, 1)
    )
    return Policy(auto_approve=level, rules=made, **fields)  # type: ignore[arg-type]


def answer(found: Facts, plan: Policy | None = None, *ceilings: Policy, option: str = "") -> tuple[str, str]:
    """Answer and rule."""
    above = tuple(Ceiling(policy=ceiling, file="ci.yml") for ceiling in ceilings)
    decision = decide(found, Layers(plan=plan, file="plan.yml", option=option, ceilings=above))
    return decision.answer, decision.rule


RISKS = ("read-only", "low", "medium", "high")


@pytest.mark.parametrize("level", ["none", *RISKS])
def test_a_level_lets_in_what_is_no_riskier(level: str) -> None:
    """Without rules a step runs without approval up to the level, and nothing does under `none`."""
    allowed = [risk for risk in RISKS if answer(facts(risk), policy(level))[0] == "allow"]
    assert allowed == list(RISKS[: ["none", *RISKS].index(level)])


def test_without_a_policy_the_file_is_reviewed_and_the_model_is_not() -> None:
    """No policy: everything in the file runs, and of a model's steps only what is low."""
    assert answer(facts("high")) == ("allow", "default:auto_approve")
    assert answer(facts("low", origin="replanned")) == ("allow", "default:llm_auto_approve")
    assert answer(facts("medium", origin="replanned")) == ("ask", "default:llm_auto_approve")


def test_deny_wins_over_require_over_allow() -> None:
    """The order of rules plays no part."""
    rules = [("allow", {"step": ("s",)}), ("require", {"step": ("s",)}), ("deny", {"step": ("s",)})]
    assert answer(facts("low"), policy("high", *rules)) == ("deny", "plan:rules.3")
    assert answer(facts("low"), policy("high", *rules[:2])) == ("ask", "plan:rules.2")
    assert answer(facts("high"), policy("none", *rules[:1])) == ("allow", "plan:rules.1")


def test_a_ceiling_cannot_be_lifted() -> None:
    """Neither an allow rule of the plan, nor its level, nor --auto-approve, makes up for a ceiling."""
    lax = policy("high", ("allow", {"step": ("*",)}))
    assert answer(facts("high"), lax, policy("low"), option="high") == ("ask", "ceiling:auto_approve")
    assert answer(facts("low"), lax, policy("high", ("deny", {"step": ("s",)}))) == (
        "deny",
        "ceiling:rules.1",
    )
    # and the plan may be stricter
    assert answer(facts("low"), policy("read-only"), policy("high"))[0] == "ask"


def test_what_a_model_wrote_is_denied_above_a_ceiling_and_never_asked() -> None:
    """Over the ceiling there is nobody to ask."""
    ceiling = policy("high", llm_auto_approve="low")
    assert answer(facts("medium", origin="expanded"), None, ceiling) == ("deny", "ceiling:llm_auto_approve")
    assert answer(facts("low", origin="expanded"), None, ceiling)[0] == "allow"


def test_the_option_takes_the_place_of_the_plans_level_and_of_nothing_else() -> None:
    """--auto-approve raises or lowers the level; rules stay, and so does the level of models."""
    assert answer(facts("high"), policy("low"), option="high") == ("allow", "option:auto_approve")
    assert answer(facts("medium"), policy("high"), option="low") == ("ask", "option:auto_approve")
    required = policy("low", ("require", {"step": ("s",)}))
    assert answer(facts("low"), required, option="high") == ("ask", "plan:rules.1")
    assert answer(facts("medium", origin="agent"), policy("low"), option="high")[0] == "ask"


def test_a_risk_in_a_rule_means_from_there_on_or_up_to_there() -> None:
    """Deny and require from a level on, allow up to one; several levels are exactly those."""
    deny = policy("high", ("deny", {"risk": ("medium",)}))
    assert [answer(facts(risk), deny)[0] for risk in RISKS] == ["allow", "allow", "deny", "deny"]
    allow = policy("none", ("allow", {"risk": ("low",)}))
    assert [answer(facts(risk), allow)[0] for risk in RISKS] == ["allow", "allow", "ask", "ask"]
    exact = policy("high", ("deny", {"risk": ("low", "medium")}))
    assert [answer(facts(risk), exact)[0] for risk in RISKS] == ["allow", "deny", "deny", "allow"]


def test_all_that_a_rule_names_has_to_fit() -> None:
    """Fields add up, words of one field do not."""
    rule = policy("high", ("deny", {"step": ("pub*", "s"), "ref": ("refs/heads/main",), "event": ("push",)}))
    assert answer(facts(ref="refs/heads/main", event="push"), rule)[0] == "deny"
    assert answer(facts(ref="refs/heads/dev", event="push"), rule)[0] == "allow"
    assert answer(facts(id="publish", ref="refs/heads/main", event="push"), rule)[0] == "deny"
    assert answer(facts(id="other", ref="refs/heads/main", event="push"), rule)[0] == "allow"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"tool": ("run",)}, facts()),
        ({"origin": ("replanned",)}, facts("low", origin="replanned")),
        ({"secret": ("PYPI_*",)}, facts(secrets=("PYPI_TOKEN",))),
        ({"effect": ("destroys",)}, facts(effects=("destroys", "writes"))),
    ],
)
def test_each_field_of_a_rule_is_looked_at(rule: dict[str, Any], found: Facts) -> None:
    """A rule fits what it names, and nothing else."""
    assert answer(found, policy("high", ("deny", rule)))[0] == "deny"
    name = next(iter(rule))
    assert answer(found, policy("high", ("deny", {name: ("else",)})))[0] == "allow"


@pytest.mark.parametrize(
    "command",
    ["git push", "git push origin main", "timeout 5 git push", "sudo -u x git push", "git ?", "? push"],
)
def test_deny_finds_a_command_in_whatever_hands_it_on(command: str) -> None:
    """A wrapper, or a word that nobody knows yet, does not get a command past its rule."""
    rule = policy("high", ("deny", {"command": ("git push*",)}))
    assert answer(facts("high", "ls -l", command), rule)[0] == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "/usr/bin/git push",
        "./bin/git push origin",
        "git --no-pager push",
        "git -C sub -c a=b push -f",
        "git " + "-x " * 40 + "push",
        "xargs git",
        "parallel -j 4 git",
    ],
)
def test_deny_finds_a_command_wherever_it_is_and_behind_its_options(command: str) -> None:
    """Another path of the program, options before what it is to do, and words from a pipe hide nothing."""
    rule = policy("high", ("deny", {"command": ("git  push*",)}))
    assert answer(facts("high", command), rule)[0] == "deny"
    for other in ("git -C sub log", "git stash push", "xargs git log", "git-push"):
        assert answer(facts("medium", other), rule)[0] == "allow", other


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'cd . && git push'",
        "eval 'true; git   push'",
        "bash <<E\ngit push\nE",
        "python3 -c 'import os; os.system(\"git push\")'",
        "alias q='git push'",
        "sh -c 'git \\\n push'",
        "bash -c \"g''it -C . push\"",
    ],
)
def test_deny_finds_a_command_in_what_another_program_reads(text: str) -> None:
    """In a text of class high, what is in quotes or in a here-document may be run; below it, it is not."""
    rule = policy("high", ("deny", {"command": ("git push*",)}))
    step = facts().step
    assert answer(Facts(step=step, risk="high", text=text), rule)[0] == "deny"
    quoted = Facts(step=step, risk="low", text="git commit -m 'no git push'", commands=(("git", "commit"),))
    assert answer(quoted, rule)[0] == "allow"


def test_a_shell_is_a_run_where_a_rule_takes_away() -> None:
    """`deny: {tool: shell}` is about scripts, under whatever key they stand; `allow` lets in what it names."""
    assert answer(facts(), policy("high", ("deny", {"tool": ("shell",)})))[0] == "deny"
    assert answer(facts(), policy("none", ("allow", {"tool": ("shell",)})))[0] == "ask"


def test_a_secret_that_is_inherited_counts_where_a_rule_takes_away() -> None:
    """A step need not list what it sees anyway."""
    found = facts(inherited=("PYPI_TOKEN",))
    assert answer(found, policy("high", ("deny", {"secret": ("PYPI_*",)})))[0] == "deny"
    assert answer(found, policy("none", ("allow", {"secret": ("PYPI_*",)})))[0] == "ask"


def test_names_of_files_may_be_any() -> None:
    """A pattern of the shell is no way around a rule about what it stands for."""
    rule = policy("high", ("deny", {"command": ("rm -rf dist*",)}))
    assert answer(facts("high", "rm -rf d*"), rule)[0] == "deny"


def test_an_unknown_argument_is_no_command() -> None:
    """What a printed value may be makes no command of it."""
    rule = policy("high", ("deny", {"command": ("git push*",)}))
    assert answer(facts("low", "echo ?", "test -n ?"), rule)[0] == "allow"


def test_deny_finds_a_command_in_a_text_that_was_not_understood() -> None:
    """Where there are no commands to look at, the text is searched."""
    rule = policy("high", ("deny", {"command": ("git push*",)}))
    hidden = Facts(step=facts().step, risk="high", text='f() {\n  git push "$@"\n}; f', is_understood=False)
    assert answer(hidden, rule)[0] == "deny"


def test_allow_wants_every_effect_where_deny_and_require_want_one() -> None:
    """What fetches may be let in by its effect; what fetches and publishes is not let in by half of what it does."""
    fetches, publishes = facts("high", effects=("network",)), facts("high", effects=("network", "publishes"))
    lets_in = policy("low", ("allow", {"effect": ("network",)}))
    assert (answer(fetches, lets_in)[0], answer(publishes, lets_in)[0]) == ("allow", "ask")
    assert answer(facts("high"), lets_in)[0] == "ask"
    assert answer(publishes, policy("high", ("deny", {"effect": ("network",)})))[0] == "deny"


def test_allow_wants_every_command_and_only_what_is_known() -> None:
    """One more command, a wrapper, an unknown word or a text that was not understood is no allowed command."""
    rule = policy("none", ("allow", {"command": ("git push origin *",)}))
    assert answer(facts("high", "git push origin main", is_bare=True), rule)[0] == "allow"
    for commands in (
        ("git push origin main", "rm -rf /"),
        ("timeout 5 git push origin main",),
        ("git push origin ?",),
        (),
    ):
        assert answer(facts("high", *commands, is_bare=True), rule)[0] == "ask"
    assert answer(facts("high", "git push origin main", is_bare=False), rule)[0] == "ask"


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        ({"id": "migrate-db"}, "make x"),
        ({"title": "Deploy to production"}, "make x"),
        ({}, "psql -c drop  table users"),
        ({}, "./deploy.sh staging"),
    ],
)
def test_words_make_a_checkpoint(fields: dict[str, Any], command: str) -> None:
    """A rule can ask before whatever speaks of deployments, migrations, production or money."""
    words = ("migrate", "drop table", "deploy", "production", "billing", "payment")
    rule = policy("high", ("require", {"words": words}))
    assert answer(facts("medium", command, **fields), rule)[0] == "ask"
    assert answer(facts("medium", "make employer"), rule)[0] == "allow"


def test_what_is_in_force_is_one_line() -> None:
    """It names every level with its source."""
    assert "none; all steps run without approval" in in_force(Layers(file="plan.yml"))
    told = in_force(
        Layers(
            plan=policy("medium", ("deny", {"step": ("x",)})).but(line=7),
            file="plan.yml",
            ceilings=(Ceiling(policy=policy("low"), file="ci.yml"),),
        )
    )
    assert told == (
        "auto-approve medium, model-written low, 1 rule (plan.yml:7); at most low, model-written low (ci.yml)"
    )
    assert "--auto-approve" in in_force(Layers(option="high"))
