"""What a person writes about templates: files that plans are made of."""

from __future__ import annotations

from planrun.source.schema.values import Params
from planrun.source.schema.words import AnyMapping, Line, Text, TextList, Written, key


class Template(Written):
    """What makes a file a template: its variables, and what has to be there before the plan does anything."""

    description: Text | None = key("What the plans do that are made of it.", "An endpoint, with its tests.")
    vars: Params | None = key(
        "Its variables, as `${{ vars.NAME }}` in it.", {"name": {"type": "string", "required": True}}
    )
    requires: TextList | None = key("Commands that must be there.", ["node", "npm"])
    prerequisites: TextList | None = key("Files that must be there.", ["package.json"])


class Extends(Written):
    """A template that a plan extends, and the values of its variables."""

    template: Line = key("The name of a template, or the path of its file.", "node-package", required=True)
    with_: AnyMapping | None = key("The values of its variables.", {"name": "web"}, alias="with")
