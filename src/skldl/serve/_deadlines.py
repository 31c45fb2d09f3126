"""A time limit for requests: one timer for all of them.

`asyncio.timeout` makes a timer for each request, which costs as much as parsing a row. All requests have the same limit
here, so that they become late in the order in which they began, and one timer for the oldest is enough.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Deadlines:
    """Cancels work that takes longer than a limit.

    Examples
    --------
    >>> import asyncio
    >>> asyncio.run(Deadlines(5.0).wait_for(asyncio.sleep(0, "done")))
    'done'
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait_for(self, work: Awaitable[Result]) -> Result:
        """Wait for the result of some work; `TimeoutError` is raised if it takes too long.

        The work runs in the current task, which has no other work in this object.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        self._ends[task] = loop.time() + self._seconds
        if self._loop is not loop:  # no timer runs in this event loop
            self._loop = loop
            loop.call_later(self._seconds, self._cancel_late, loop)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._late:
                task.uncancel()
                raise TimeoutError from None
            raise
        finally:
            del self._ends[task]
            self._late.discard(task)

    def _cancel_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what is late, and come again when the next one would be."""
        now = loop.time()
        for task, end in self._ends.items():
            if end > now:
                loop.call_at(end, self._cancel_late, loop)
                return
            if task not in self._late:
                self._late.add(task)
                task.cancel()
        self._loop = None
