# The parts of Dask's library that planrun uses.

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any

class Future:
    status: str
    def release(self) -> None: ...
    def exception(self) -> Awaitable[BaseException | None]: ...

class Client:
    status: str
    connection_args: dict[str, Any]
    def __init__(self, address: str, *, asynchronous: bool, timeout: float, name: str) -> None: ...
    def __await__(self) -> Generator[Any, None, Client]: ...
    def nthreads(self) -> Awaitable[dict[str, int]]: ...
    def get_versions(self, *, packages: Sequence[str]) -> Awaitable[dict[str, Any]]: ...
    def run(
        self, function: Callable[..., Any], *, workers: Sequence[str], on_error: str
    ) -> Awaitable[dict[str, Any]]: ...
    def submit(
        self,
        func: Callable[..., Any],
        *args: Any,
        key: str,
        pure: bool,
        retries: int,
        workers: Sequence[str],
        priority: int,
        resources: dict[str, int] | None,
    ) -> Future: ...

class _WorkerState:
    nthreads: int
    total_resources: dict[str, float]

class Worker:
    name: object
    handlers: dict[str, Callable[..., Any]]
    state: _WorkerState
    local_directory: str

def wait(fs: Iterable[Future]) -> Awaitable[Any]: ...
