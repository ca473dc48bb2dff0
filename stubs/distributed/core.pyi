# The parts of Dask's library that planrun uses.

from enum import Enum

class Status(Enum):
    dont_reply = "dont_reply"
