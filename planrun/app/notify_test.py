"""A try of the notifications of a plan, without a run."""

from __future__ import annotations

import json
import os
from tempfile import TemporaryDirectory

from planrun.actions.environment import caller_environment
from planrun.app.notifying import recipients_of
from planrun.app.secrets import read_secrets
from planrun.approval.policies import ceilings_of, layers_of
from planrun.errors import InvalidInput
from planrun.executors.wait import SignalInbox
from planrun.model.record import Record
from planrun.notify.document import example
from planrun.notify.orders import Place, body_of, order_of
from planrun.notify.sending import Order, Sender, wait
from planrun.reports.escape import line
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.settings import Settings


class Trial(Record):
    """One target of a try: what it gets, and how the delivery ended; `entry` is empty where nothing was sent."""

    name: str
    to: str
    event: str
    body: Any
    entry: Mapping[str, Any] = {}


_ADD = "add `notify` to the plan, e.g. `notify: [{slack: {url_secret: HOOK_URL}, on: [failed]}]`"


def try_out(plan: Plan, settings: Settings, event: str, *, send: bool) -> list[Trial]:
    """Send a test message to each target of a plan and of its ceilings, and return how that went.

    `event`: only to targets of it; "": to all, with the first event of each. Raises InvalidInput without any.
    """
    ceilings = ceilings_of(settings)
    layers = layers_of(plan, settings, ceilings)
    chosen = [each for each in recipients_of(plan, layers) if not event or event in each.target.on]
    if not chosen:
        what = f" of `{event}`" if event else ""
        raise InvalidInput(f"{plan.file}: no target is notified{what}: {_ADD}")
    needed = tuple([name for each in chosen for name in each.target.needs])
    secrets = read_secrets(plan, more=needed)
    env, _ = caller_environment(plan.inherit_env, os.environ, (*plan.secrets, *needed))
    place = Place(workspace=current_folder(), env=env, secrets=secrets.values)
    trials, senders = [], []
    with TemporaryDirectory(prefix="planrun-notify-") as folder:
        for number, each in enumerate(chosen):
            happened = event or each.target.on[0]
            found = example(happened, plan, os.environ)
            if secrets.redactor:
                found = secrets.redactor.mask_value(found)
            entry = {"event": happened, "target": each.name, "to": line(each.target.label, 200)}
            trials.append(
                Trial(
                    name=each.name,
                    to=entry["to"],
                    event=happened,
                    body=json.loads(body_of(each.target, found)),
                )
            )
            if not send:
                continue
            try:
                data = order_of(each.target, found, place, f"test {number} {os.urandom(6).hex()}")
                book = os.path.join(folder, "book")
                data |= {"book": book, "log": os.path.join(folder, str(number)), "entry": entry}
                senders.append((number, Sender(Order(data=data, entry=entry, seconds=each.target.seconds))))
            except InvalidInput as error:
                trials[number] = trials[number].but(
                    entry={**entry, "status": "failed", "message": str(error)}
                )
        with SignalInbox() as inbox:
            wait([sender for _, sender in senders], inbox)
    for number, sender in senders:
        result = {name: value for name, value in (sender.result or {}).items() if name not in _OF_BOOK}
        trials[number] = trials[number].but(entry=result)
    return trials


_OF_BOOK = ("at", "occasion", "about", "late", "unrecorded")
