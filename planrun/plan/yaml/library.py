"""PyYAML as far as a plan needs it: libyaml's parser, events and errors, a quarter of the time of `import yaml`.

`yaml/__init__.py` loads the whole library, and `yaml.reader` alone compiles a pattern for 5 ms. So the package is
registered first and its `__init__` is run when something else of it is asked for.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec, PathFinder
    from importlib.util import module_from_spec
    from types import ModuleType
    from typing import Any
else:
    # What `importlib.machinery` and `importlib.util` offer, without importing them.
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

# The modules in which libyaml's binding looks for its errors when it is loaded.
_ERRORS = {
    name: f"{name.title()}Error"
    for name in (
        *("reader", "scanner", "parser", "composer"),
        *("constructor", "emitter", "serializer", "representer"),
    )
}


def parser() -> Any:
    """Return the class of libyaml's parser; None where PyYAML was built without it."""
    if "yaml" not in sys.modules:
        spec = PathFinder.find_spec("yaml")
        if spec is not None and spec.loader is not None:
            _register(spec)
    try:
        from yaml._yaml import CParser
    except ImportError:
        return None
    return CParser


def _register(spec: ModuleSpec) -> None:
    package: Any = module_from_spec(spec)
    loader: Any = spec.loader

    def complete(name: str) -> Any:
        """Load the rest of the library; called for what the package has not yet."""
        del package.__getattr__
        loader.exec_module(package)
        if binding := sys.modules.get("yaml._yaml"):
            for module, error in _ERRORS.items():
                setattr(binding, error, getattr(getattr(package, module), error))
        return getattr(package, name)

    sys.modules["yaml"] = package
    import yaml.error
    import yaml.events
    import yaml.nodes
    import yaml.tokens

    for module, error in _ERRORS.items():
        base = yaml.error.YAMLError if module == "reader" else yaml.error.MarkedYAMLError
        setattr(package, module, _holding(error, type(error, (base,), {})))
    package.__getattr__ = complete


def _holding(name: str, value: object) -> ModuleType:
    module = type(sys)(name)
    setattr(module, name, value)
    return module
