"""Which credentials and which address count, and what the process that calls a model is told of the environment."""

from __future__ import annotations

import pytest

from planrun.llm.credentials import AddressError, Credentials, endpoint_of, find_credentials

FEDERATION = {
    "ANTHROPIC_IDENTITY_TOKEN": "token-1",
    "ANTHROPIC_FEDERATION_RULE_ID": "rule-1",
    "ANTHROPIC_ORGANIZATION_ID": "organization-1",
}


@pytest.mark.parametrize(
    ("environ", "kind", "fields"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, "api_key", {"value": "k"}),
        ({"ANTHROPIC_API_KEY": " k\n"}, "api_key", {"value": "k"}),
        ({"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_API_KEY": ""}, "auth_token", {"value": "t"}),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t", **FEDERATION}, "api_key", {"value": "k"}),
        (
            {**FEDERATION, "ANTHROPIC_IDENTITY_TOKEN_FILE": "f", "ANTHROPIC_WORKSPACE_ID": "w"},
            "federation",
            {
                "federation_rule_id": "rule-1",
                "organization_id": "organization-1",
                "workspace_id": "w",
                "token_file": "f",
            },
        ),
    ],
)
def test_the_first_of_key_token_and_workload_counts(
    environ: dict[str, str], kind: str, fields: dict[str, str]
) -> None:
    """A key wins over a token, both over workload identity, and a token's file over the token."""
    found = find_credentials(environ)
    assert isinstance(found, Credentials)
    assert (found.kind, dict(found.fields)) == (kind, fields)
    assert not any(value in repr(found) for value in fields.values() if len(value) > 1)


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({}, "there are no credentials for a language model: set ANTHROPIC_API_KEY"),
        (
            {"ANTHROPIC_API_KEY": "two\nlines"},
            "ANTHROPIC_API_KEY holds blanks, line breaks or other characters that no credential has",
        ),
        (
            {"ANTHROPIC_IDENTITY_TOKEN": "t", "ANTHROPIC_ORGANIZATION_ID": "o"},
            "workload identity is set up in part: ANTHROPIC_FEDERATION_RULE_ID is missing",
        ),
        (
            {"ANTHROPIC_FEDERATION_RULE_ID": "r", "ANTHROPIC_ORGANIZATION_ID": "o"},
            "workload identity is set up in part: ANTHROPIC_IDENTITY_TOKEN_FILE or ANTHROPIC_IDENTITY_TOKEN is missing",
        ),
    ],
)
def test_what_is_missing_is_named(environ: dict[str, str], told: str) -> None:
    """Without credentials one line says what to set, and shows none of the values."""
    assert find_credentials(environ) == told


def test_the_address_of_the_caller_wins_over_the_environment() -> None:
    """The option counts before ANTHROPIC_BASE_URL, and that before Anthropic's own address."""
    environ = {"ANTHROPIC_BASE_URL": "https://gateway.example/v/"}
    assert endpoint_of("http://localhost:1/", environ).base_url == "http://localhost:1"
    assert endpoint_of("", environ).base_url == "https://gateway.example/v"
    assert endpoint_of("", {}).base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("gateway.example", "not the address of a service: 'gateway.example'"),
        ("file:///etc/passwd", "not the address of a service: 'file:///etc/passwd'"),
        ("https://host:port", "not the address of a service: 'https://host:port'"),
        ("https://a\nb.example", "not the address of a service: 'https://a\\nb.example'"),
        (
            "https://me:hush@gateway.example",
            "the address of the service holds a user or password, which would be shown",
        ),
        (
            "https://gateway.example/?key=1",
            "an address of a service has no ? and no #: 'https://gateway.example/?key=1'",
        ),
        ("ftp://me:hush@gateway.example", "not the address of a service: 'gateway.example'"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str, told: str) -> None:
    """What is no address of a service is told in one line that shows no password."""
    with pytest.raises(AddressError) as refused:
        endpoint_of(address, {})
    assert str(refused.value) == told


def test_the_environment_is_made_from_scratch() -> None:
    """No credential, no option of Python and no header of somebody else reaches the process; proxies do."""
    environ = {
        "PATH": "/bin",
        "HOME": "/root",
        "https_proxy": "http://proxy.example:8080",
        "NO_PROXY": "internal.example",
        "SSL_CERT_FILE": "/ca.pem",
        "PYTHONPATH": "/tmp",
        "LD_PRELOAD": "/tmp/x.so",
        "ANTHROPIC_CUSTOM_HEADERS": "x: y",
        "ANTHROPIC_BASE_URL": "https://gateway.example",
        "ANTHROPIC_LOG": "debug",
        "GITHUB_TOKEN": "hush",
        **FEDERATION,
    }
    kept = {"PATH", "HOME", "https_proxy", "NO_PROXY", "SSL_CERT_FILE"}
    assert set(endpoint_of("", environ).environ) == kept


@pytest.mark.parametrize("address", ["http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"])
def test_nothing_on_this_machine_is_asked_for_through_a_proxy(address: str) -> None:
    """A proxy would get the key of a service that is here."""
    environ = {"HTTP_PROXY": "http://proxy.example:8080", "ALL_PROXY": "http://proxy.example:8080"}
    assert endpoint_of(address, environ).environ == {}
