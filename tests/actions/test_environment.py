"""The environment of a step: variables of the caller, and additions by env files."""

from __future__ import annotations

import pytest

from planrun.actions.environment import caller_environment, looks_secret, parse_env_file

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


def test_env_files_are_data() -> None:
    """Comments, quotes and export are read; nothing is expanded."""
    odd = "a\u2028B=b\x85C=c\x0bD=d"
    assert parse_env_file(f"A={odd}\r\nE='{odd} '\n") == {"A": odd, "E": f"{odd} "}
    text = "# c\nA=1\nexport B='x y' # c\nC=\"l1\\nl2\"\nD=$HOME\nE=a # c\n\nF=\n"
    assert parse_env_file(text) == {"A": "1", "B": "x y", "C": "l1\nl2", "D": "$HOME", "E": "a", "F": ""}


@pytest.mark.parametrize("text", ["A", "1A=x", "A B=x", "A='x", "=x"])
def test_a_broken_env_file_names_its_line(text: str) -> None:
    """The line number is in the message."""
    with pytest.raises(ValueError, match="line 2"):
        parse_env_file("OK=1\n" + text)
