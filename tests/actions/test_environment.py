"""The environment of a step: variables of the caller, and additions by env files."""

from __future__ import annotations

import pytest

from planrun.actions.environment import caller_environment, looks_secret

CALLER = {
    "PATH": "/bin",
    "HOME": "/root",
    "GITHUB_TOKEN": "t",
    "AWS_REGION": "eu",
    "DB_PASSWORD": "p",
    "ANTHROPIC_API_KEY": "k",
    "PLANRUN_JOBS": "4",
    "BASH_ENV": "/tmp/x",
    "KEYBOARD": "de",
}


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "npm_config_token_KEY",
        "CLIENT_SECRET",
        "SECRET_KEY_BASE",
        "PGPASSWORD",
        "AWS_ACCESS_KEY_ID",
        "ACTIONS_RUNTIME_TOKEN",
        "OPENAI_API_KEY",
        "my_passwd",
        "SSH_PRIVATE_KEY",
        "TOKEN",
        "github_token",
        "DOCKER_AUTH_CONFIG",
        "npm_config__auth",
        "CI_JOB_JWT",
        "DB_PASS",
        "MYSQL_PWD",
    ],
)
def test_credentials_are_known_by_their_names(name: str) -> None:
    """Tokens, keys, secrets, passwords and whole families of cloud variables."""
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "KEYBOARD",
        "MONKEY",
        "TOKENIZERS_PARALLELISM",
        "CI",
        "LANG",
        "PWD",
        "OLDPWD",
        "GIT_ASKPASS",
    ],
)
def test_ordinary_names_are_no_credentials(name: str) -> None:
    """A part of a word is not enough."""
    assert not looks_secret(name)


def test_safe_leaves_credentials_and_shell_start_up_files_out() -> None:
    """Removed variables are reported by name; options of planrun itself never reach a step."""
    env, left_out = caller_environment("safe", CALLER)
    assert env == {"PATH": "/bin", "HOME": "/root", "AWS_REGION": "eu", "KEYBOARD": "de"}
    assert left_out == ("ANTHROPIC_API_KEY", "DB_PASSWORD", "GITHUB_TOKEN")


def test_all_and_none_inherit_all_and_nothing() -> None:
    """`all` hands everything on but our own options, `none` only a PATH."""
    assert "GITHUB_TOKEN" in caller_environment("all", CALLER)[0]
    assert "PLANRUN_JOBS" not in caller_environment("all", CALLER)[0]
    assert caller_environment("none", CALLER)[0] == {"PATH": "/bin"}
