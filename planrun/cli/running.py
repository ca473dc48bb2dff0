"""`planrun execute` and `planrun resume`: the hot path, without click."""

from __future__ import annotations

import gc
import sys

from planrun.cli.arguments import EXECUTE, RESUME, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.running import Result
    from planrun.app.secrets import Vault
    from planrun.app.settings import Settings
    from planrun.model.plan import Plan
    from planrun.source.problems import Problem


def running(words: list[str]) -> int:
    """Run `execute PLAN` or `resume RUN` with its options; `words` is the whole command line."""
    # A run makes few cycles and ends soon: looking for garbage in 10,000 steps costs more than it frees.
    gc.disable()
    return _execute(words[1:]) if words[0] == "execute" else _resume(words[1:])


def _execute(words: list[str]) -> int:
    file, values = parse(words, EXECUTE, "PLAN file")
    from planrun.app.running import vault_of
    from planrun.app.settings import Settings
    from planrun.source.load import load

    settings = Settings(**values)
    warnings: list[Problem] = []
    plan = load(file, cache=settings.cache, warnings=warnings)
    vault = vault_of(plan)
    try:
        return _start(plan, settings, warnings, vault)
    except Exception as error:
        if vault and vault.veil:
            vault.veil.mask_error(error)
        raise


def _start(plan: Plan, settings: Settings, warnings: list[Problem], vault: Vault | None) -> int:
    from planrun.app.running import execute

    if warnings:
        from planrun.source.problems import render_text

        text = render_text(warnings, {plan.file: plan.source})
        sys.stderr.write(vault.veil.mask_text(text) if vault and vault.veil else text)
    params: dict[str, Any] = {}
    if plan.params or settings.params:
        from planrun.source.params import parse_params

        params = parse_params(plan, settings.params)
    return _finish(execute(plan, settings, params, vault=vault), settings)


def _resume(words: list[str]) -> int:
    run, values = parse(words, RESUME, "RUN id (or `last`)")
    from planrun.app.resuming import resume
    from planrun.app.settings import Settings
    from planrun.cli.failure import printable

    settings = Settings(**values)
    result = resume(run, settings, lambda line: sys.stderr.write(f"planrun: {printable(line)}\n"))
    if result is not None:
        return _finish(result, settings)
    sys.stderr.write("planrun: the run is finished; nothing to do\n")
    if settings.json:
        from planrun.cli.reporting import print_ledger

        print_ledger(run)
    return 0


def _finish(result: Result, settings: Settings) -> int:
    if settings.json:
        from planrun.cli.printing import say_bytes

        with open(result.reports["json"], "rb") as file:
            say_bytes(file.read())
    return result.exit_code
