"""Connections that are idle, late or too many are closed, and each of the others answers one request after another."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

uvicorn = pytest.importorskip("uvicorn")
pytest.importorskip("httptools")

from uvicorn.server import ServerState  # noqa: E402 - after the check for the extra

from skldl.serve._connections import (  # noqa: E402
    MAX_HEADER_BYTES,
    Connection,  # tests/attack has the same limits for the service as a process, with their real times
    Connections,
)

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def served(seconds=10.0, keep_alive=10):
    """Function that opens a connection, limits, and the connections that are open."""
    config = uvicorn.Config(answer, timeout_keep_alive=keep_alive, lifespan="off", log_config=None, access_log=False)
    config.load()
    limits, state = Connections(seconds, 2), ServerState()
    make = partial(Connection, limits=limits, config=config, server_state=state, app_state={})
    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    writers = []

    async def opened():
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writers.append(writer)
        await asyncio.sleep(0.05)
        return reader, writer

    yield opened, limits, state.connections
    for writer in writers:
        writer.close()
    server.close()


async def ask(reader, writer, request=GET):
    writer.write(request)
    return (await asyncio.wait_for(reader.readuntil(b"\r\n"), 5))[:12]


def test_requests_follow_each_other_until_the_connection_is_idle():
    async def main():
        async with served(keep_alive=0.2) as (opened, limits, connections):
            reader, writer = await opened()
            for _ in range(3):
                assert await ask(reader, writer) == b"HTTP/1.1 200"
                assert (await reader.readuntil(b"ok")).endswith(b"\r\n\r\nok")
            writer.write(2 * GET)  # at once
            for _ in range(2):
                assert (await reader.readuntil(b"ok")).endswith(b"\r\n\r\nok")
            limits.check(connections)
            await asyncio.sleep(0.3)
            assert connections
            limits.check(connections)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            assert not connections

    asyncio.run(main())


def test_late_headers(capsys):
    async def main():
        async with served(seconds=0.2) as (opened, limits, connections):
            silent, slow, second = [await opened() for _ in range(3)]
            slow[1].write(GET[:20])
            assert await ask(*second) == b"HTTP/1.1 200"
            await second[0].readuntil(b"ok")
            second[1].write(GET[:20])  # its second request
            await asyncio.sleep(0.3)
            for expected in (2, 3):
                limits.check(connections)
                assert sum(connection._lingers for connection in connections) == expected
                await asyncio.sleep(0.3)
            limits.check(connections)  # nothing to do for those that linger
            for reader, _ in (silent, slow, second):
                assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 408")

    asyncio.run(main())
    assert '{"no complete headers in time":2}' in capsys.readouterr().err


def test_a_new_connection_takes_the_place_of_the_longest_idle_one(capsys):
    async def main():
        async with served() as (opened, limits, connections):
            limits.maximum = 2
            first, second = await opened(), await opened()
            assert await ask(*first) == b"HTTP/1.1 200"  # now the second one is idle for longer
            third = await opened()
            assert len(connections) == 2
            assert await asyncio.wait_for(second[0].read(), 5) == b""
            for reader, writer in (first, third):
                await asyncio.sleep(0)
                writer.write(GET)
                assert b"ok" in await asyncio.wait_for(reader.readuntil(b"ok"), 5)
            limits.check(connections)

    asyncio.run(main())
    assert '{"more than 2 connections":1}' in capsys.readouterr().err


@pytest.mark.parametrize("ending", [b"X: " + b"a" * MAX_HEADER_BYTES, b"X: a\r\n" * MAX_HEADER_BYTES])
def test_long_headers(ending):
    async def main():
        async with served() as (opened, *_):
            reader, writer = await opened()
            assert await ask(reader, writer, GET[:-2] + ending) == b"HTTP/1.1 431"
            assert b"more than 65,536 bytes" in await asyncio.wait_for(reader.read(), 5)

    asyncio.run(main())
