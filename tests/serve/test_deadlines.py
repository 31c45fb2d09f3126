"""One timer for all requests: each is cancelled at its own time, and nothing else is."""

import asyncio

import pytest

from skldl.serve._deadlines import Deadlines


def test_late_work_is_cancelled_and_other_work_is_not():
    deadlines = Deadlines(0.5)

    async def work(seconds):
        try:
            return await deadlines.wait_for(asyncio.sleep(seconds, seconds))
        except TimeoutError:
            return "late"

    async def serve():
        first = [asyncio.create_task(work(seconds)) for seconds in (30, 0.0, 40)]
        await asyncio.sleep(0.2)
        later = [asyncio.create_task(work(seconds)) for seconds in (50, 0.01)]
        return await asyncio.gather(*first, *later)

    for _ in range(2):  # also in a second event loop
        assert asyncio.run(asyncio.wait_for(serve(), 20)) == ["late", 0.0, "late", "late", 0.01]
    assert not deadlines._ends
    assert not deadlines._late


def test_the_timer_starts_again_after_a_pause():
    deadlines = Deadlines(0.05)

    async def serve():
        assert await deadlines.wait_for(asyncio.sleep(0, "done")) == "done"
        await asyncio.sleep(0.2)  # the timer finds nothing and is gone
        with pytest.raises(TimeoutError):
            await deadlines.wait_for(asyncio.sleep(30))
        assert not asyncio.current_task().cancelling()
        return await deadlines.wait_for(asyncio.sleep(0, "again"))

    assert asyncio.run(asyncio.wait_for(serve(), 20)) == "again"


def test_a_cancelled_request_is_not_a_late_one():
    deadlines = Deadlines(30)

    async def serve():
        task = asyncio.create_task(deadlines.wait_for(asyncio.sleep(20)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(serve())
    assert not deadlines._ends


def test_errors_pass_through():
    async def fail():
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        asyncio.run(Deadlines(5).wait_for(fail()))
