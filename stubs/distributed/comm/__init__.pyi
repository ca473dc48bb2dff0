# The parts of Dask's library that planrun uses.

from collections.abc import Coroutine
from typing import Any

from distributed.comm.core import Comm

def connect(addr: str, **connection_args: Any) -> Coroutine[Any, Any, Comm]: ...
