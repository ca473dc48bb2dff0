"""Steps on the workers of a Dask cluster: planrun schedules, records and guards; Dask moves the work.

Four processes take part. planrun has the executor (`executor`), which speaks to a client process of its own
(`client`, started by `process`). The client submits to Dask's scheduler a task that names an attempt and nothing else.
The task asks the client for attempts on a connection from the client to the Dask worker (`worker`), and the client
hands each attempt out once. Where workers do not share the workspace, its files move by digest (`files`). The step
itself runs in a process beside the Dask worker (`runner`), by the same code as on planrun's own machine. That process
holds a lease from the client: when nothing came for LEASE seconds, it ends its steps, and no attempt counts as lost
before that.
"""

from __future__ import annotations

LEASE = 10.0
"""Seconds after the last sign of the client until a runner ends its steps."""
SETTLING = 2.0
"""Seconds that a runner may take to end its steps."""
