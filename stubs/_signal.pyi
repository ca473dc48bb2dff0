from collections.abc import Callable, Iterable
from types import FrameType
from typing import Final, TypeAlias

_Handler: TypeAlias = Callable[[int, FrameType | None], object]

NSIG: Final[int]
SIG_DFL: Final[int]
SIG_IGN: Final[int]
SIGCHLD: Final[int]
SIGCONT: Final[int]
SIGHUP: Final[int]
SIGINT: Final[int]
SIGIO: Final[int]
SIGKILL: Final[int]
SIGTERM: Final[int]
SIGUSR1: Final[int]

def getsignal(signalnum: int, /) -> _Handler | int | None: ...
def pidfd_send_signal(pidfd: int, sig: int, siginfo: None = None, flags: int = 0, /) -> None: ...
def set_wakeup_fd(fd: int, /, *, warn_on_full_buffer: bool = True) -> int: ...
def signal(signalnum: int, handler: _Handler | int, /) -> _Handler | int | None: ...
def valid_signals() -> Iterable[int]: ...
