"""Actions that ask GitHub or another service for a token: the token is a secret of the plan, by data.

Outside of GitHub's runner nothing proves who a job is, so no action can trade that for a token.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The outputs that hold a token, and the secret that takes the place of each.
TOKENS: Mapping[str, Mapping[str, str]] = {
    "actions/create-github-app-token": {"token": "APP_TOKEN"},
    "tibdex/github-app-token": {"token": "APP_TOKEN"},
    "peter-murray/workflow-application-token-action": {"token": "APP_TOKEN"},
    "getsentry/action-github-app-token": {"token": "APP_TOKEN"},
    "octo-sts/action": {"token": "STS_TOKEN"},
    "DataDog/dd-octo-sts-action": {"token": "STS_TOKEN"},
    "DataDog/dd-sts-action": {"api_key": "DATADOG_API_KEY", "app_key": "DATADOG_APP_KEY"},
    "rust-lang/crates-io-auth-action": {"token": "CARGO_REGISTRY_TOKEN"},
    "NuGet/login": {"NUGET_API_KEY": "NUGET_API_KEY"},
}
# Actions that log in to a service for the steps behind them: the command that shows that somebody is logged in.
LOGINS: Mapping[str, tuple[str, str]] = {
    "azure/login": ("az", "az account show --output none"),
    "google-github-actions/auth": ("gcloud", "gcloud auth print-access-token --quiet > /dev/null"),
    "rubygems/configure-rubygems-credentials": (
        "gem",
        'test -n "$GEM_HOST_API_KEY" || test -f ~/.gem/credentials',
    ),
}
