"""The service behind the routes: models, limits, parameters of requests, predictions, reload."""

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import orjson
from starlette.types import Receive

from skldl.serve._bodies import (
    DIGITS,
    JSON,
    NotInPieces,
    format_of_answer,
    format_of_body,
    read_records,
    read_table,
    record_pieces,
    write_answer,
)
from skldl.serve._errors import PARAMETERS, Check, RequestEnded, RequestError
from skldl.serve._logs import log
from skldl.serve._metrics import Metrics
from skldl.serve._model import GIVEN, TRUE, Answer, ServedModel
from skldl.tabular._prediction import COVERS, LEVEL
from skldl.utils.spelling import split_list

MAX_INLINE_BYTES = 2**15
"""Largest body that is parsed in the event loop: starting a thread would take longer than parsing; chosen by hand."""
MAX_INLINE_ROWS = 64
"""Most rows that are predicted in the event loop, for the same reason; chosen by hand."""
_LATE = object()
"""Marks a request that is cancelled because it takes too long."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """Limits for each request.

    Attributes
    ----------
    body_bytes : int
        Maximum size of a body.
    rows : int
        Maximum number of rows in a body.
    seconds : float
        Maximum time from the first byte of a request to the end of its headers, and from there to its answer.
    concurrent : int
        Maximum number of requests that are answered at the same time; further ones are rejected with status 503.
    columns : int
        Maximum number of columns in a CSV or Parquet body, or twice those of the model if these are more.

    Examples
    --------
    >>> from skldl.serve import Limits
    >>> Limits(rows=1000).seconds
    30.0
    """

    body_bytes: int = 32 * 2**20
    rows: int = 100_000
    seconds: float = 30.0
    concurrent: int = 64
    columns: int = 10_000


class Query(NamedTuple):
    """Parameters of a request for predictions; an empty ``format`` means that of the header Accept."""

    format: str = ""
    keep: tuple[str, ...] = ()
    digits: int = DIGITS
    level: float = LEVEL
    covers: str = GIVEN


DEFAULTS = Query()


def read_query(query_string: bytes, model: ServedModel) -> Query:
    """Read the parameters after the question mark; unknown names and names given twice are errors."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True):
        if name not in PARAMETERS:
            raise RequestError(400, f"{name[:40]!r} is not a parameter of predict. Use {', '.join(PARAMETERS)}.")
        if name in given:
            raise RequestError(
                400, f"The parameter {name} is given twice. Give it once; columns are separated by commas."
            )
        given[name] = value
    return Query(
        given.get("format", ""),
        tuple(split_list(given["keep"])) if "keep" in given else (),
        _digits(given["digits"]) if "digits" in given else DIGITS,
        _level(given["level"], model) if "level" in given else LEVEL,
        _covers(given["covers"], model) if "covers" in given else GIVEN,
    )


def _digits(text: str) -> int:
    if len(text) > 2 or not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 17:
        raise RequestError(400, f"digits={text[:20]} must be a number from 1 to 17.")
    return int(text)


def _level(text: str, model: ServedModel) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise RequestError(400, f"level={text[:20]} must be a number between 0 and 1, such as 0.9.")
    if model.intervals is None:
        raise _no_intervals(f"level={text[:20]}", model)
    return level


def _covers(text: str, model: ServedModel) -> str:
    if text not in COVERS:
        raise RequestError(400, f"covers={text[:20]} is not one of {', '.join(COVERS)}.")
    if model.intervals is None:
        raise _no_intervals(f"covers={text}", model)
    if text == TRUE and model.true_intervals is None:
        raise RequestError(
            422,
            f"covers=true: the model {model.name} does not know the votes behind its calibration rows. Leave it out, "
            "or make the model from votes: skldl fit --intervals with --kind counts or --kind votes.",
        )
    return text


def _no_intervals(parameter: str, model: ServedModel) -> RequestError:
    return RequestError(
        422, f"{parameter}: the model {model.name} keeps no calibration rows. Make it with skldl fit --intervals."
    )


class Service:
    """The models of a service and the state that their requests share.

    Parameters
    ----------
    paths : mapping
        From the name of each model to its file; the first one is the default.
    limits : Limits
        Limits for each request.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import skldl
    >>> from skldl.serve import Service
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.skldl"
    ...     _ = skldl.save(fitted.model, path, description=fitted.description)
    ...     service = Service({"moods": path})
    >>> service.model(None).labels
    ['no', 'yes']
    """

    def __init__(self, paths: Mapping[str, str | os.PathLike[str]], limits: Limits | None = None) -> None:
        self.paths = {name: Path(path) for name, path in paths.items()}
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self.models = self._load()
        self.draining = False
        self._pool = ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2), thread_name_prefix="predict")
        self._reloading = asyncio.Lock()
        self._ends: dict[asyncio.Task[Any], float] = {}
        self._timed: asyncio.AbstractEventLoop | None = None  # where a timer for the oldest request runs

    def _load(self) -> dict[str, ServedModel]:
        return {name: ServedModel(path, name) for name, path in self.paths.items()}

    async def reload(self) -> bool:
        """Read all model files again; running requests keep the models that they began with.

        Returns
        -------
        bool
            Whether it succeeded. If one file cannot be read, all models are kept.
        """
        async with self._reloading:
            try:
                models = await asyncio.get_running_loop().run_in_executor(self._pool, self._load)
            except Exception as error:  # a broken file must not end a service that runs
                log("error", "reload failed", message=str(error))
                self.metrics.reload("failed")
                return False
            self.models = models
        self.metrics.reload("ok")
        log("info", "reloaded", models={name: model.sha256[:12] for name, model in models.items()})
        return True

    def model(self, name: str | None) -> ServedModel:
        """The model of this name, or the default one.

        Parameters
        ----------
        name : str or None
            Name of the model; None for the default.

        Returns
        -------
        ServedModel
            The model.
        """
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise RequestError(404, f"There is no model {name[:100]!r}. There are {', '.join(self.models)}.")
        return self.models[name]

    async def predict(
        self, model: ServedModel, headers: Mapping[bytes, bytes], query_string: bytes, receive: Receive
    ) -> tuple[bytes, str, int]:
        """Answer a request for predictions.

        Parameters
        ----------
        model : ServedModel
            The model.
        headers : mapping
            Headers of the request, names in lower case.
        query_string : bytes
            The query of the address, after the question mark.
        receive : callable
            Returns the next ASGI message.

        Returns
        -------
        body : bytes
            The answer.
        media_type : str
            Its media type.
        n_rows : int
            Number of rows.
        """
        return await self._in_time(self._predict(model, headers, query_string, receive))

    async def _predict(
        self, model: ServedModel, headers: Mapping[bytes, bytes], query_string: bytes, receive: Receive
    ) -> tuple[bytes, str, int]:
        body = await self.body(headers, receive)
        given = format_of_body(headers.get(b"content-type", b"").decode("latin-1"), body)
        query = read_query(query_string, model) if query_string else DEFAULTS
        keep, digits = query.keep, query.digits
        wanted = format_of_answer(headers.get(b"accept", b"").decode("latin-1"), query.format, given)
        answer = records = None
        if given == JSON and len(body) <= MAX_INLINE_BYTES and not keep:
            records = read_records(body, self.limits.rows)
            if len(records) == 1 and wanted == JSON and (row := model.predict_one(records[0])) is not None:
                self.metrics.rows(model.name, 1, {})
                return orjson.dumps([row]), JSON, 1
            if len(records) <= MAX_INLINE_ROWS:
                answer = model.predict_plain(records)
                if answer is not None:
                    content = write_answer(model.with_intervals(answer, query.level, query.covers), wanted, digits)
        if answer is None:

            def predicted(check: Check) -> tuple[Answer, bytes]:
                if given != JSON:
                    limits = {"max_rows": self.limits.rows, "max_columns": self.limits.columns}
                    table = read_table(body, given, columns=model.columns, keep=keep, check=check, **limits)
                    check()
                    found = model.predict_frame(table, keep, check)
                elif records is not None:
                    found = model.predict_records(records, keep, check)
                else:
                    found = self._predict_long(model, body, keep, check)
                check()
                return found, write_answer(model.with_intervals(found, query.level, query.covers), wanted, digits)

            result = await self._in_thread(predicted)
            answer, content = result
        self.metrics.rows(model.name, answer.n_rows, answer.unusual)
        return content, wanted, answer.n_rows

    def _predict_long(self, model: ServedModel, body: bytes, keep: Sequence[str], check: Check) -> Answer:
        """Predict for a long JSON body, piece by piece if possible."""
        if not keep:
            with contextlib.suppress(NotInPieces):
                if (found := model.predict_pieces(record_pieces(body, self.limits.rows, check))) is not None:
                    return found
        return model.predict_records(read_records(body, self.limits.rows), keep, check)

    async def explain(self, model: ServedModel, headers: Mapping[bytes, bytes], receive: Receive) -> dict[str, Any]:
        """Explain the one row of a request.

        Parameters
        ----------
        model : ServedModel
            The model.
        headers : mapping from bytes to bytes
            Headers of the request.
        receive : callable
            Returns the next ASGI message.

        Returns
        -------
        dict
            The explanation in plain values.
        """
        return await self._in_time(self._explain(model, headers, receive))

    async def _explain(self, model: ServedModel, headers: Mapping[bytes, bytes], receive: Receive) -> dict[str, Any]:
        records = read_records(await self.body(headers, receive), self.limits.rows)
        if len(records) != 1:
            raise RequestError(422, f"The body has {len(records)} rows, and one is explained at a time.")
        return await self._in_thread(lambda _: model.explain(records[0]))

    async def body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body; raise an error if it is too large.

        Parameters
        ----------
        headers : mapping from bytes to bytes
            Headers of the request.
        receive : callable
            Returns the next ASGI message.

        Returns
        -------
        bytes
            The body.
        """
        limit = self.limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if len(length) > 20 or not length.isdigit() or int(length) > limit:
            raise _too_large(limit)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RequestError(415, "Compressed bodies are not accepted. Send the body without Content-Encoding.")
        message = await receive()
        body = message.get("body", b"")
        if message.get("more_body"):
            body += await self._rest(receive, limit - len(body))
        elif message["type"] == "http.disconnect":
            raise _cut_off()
        if len(body) > limit:
            raise _too_large(limit)
        if not body or body.isspace():
            raise RequestError(400, "The body is empty. Send rows as JSON, CSV or Parquet.")
        return body

    async def _rest(self, receive: Receive, n_left: int) -> bytes:
        """Read the rest of a body that comes in several messages, at most ``n_left`` bytes."""
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _cut_off()
            parts.append(message.get("body", b""))
            n_left -= len(parts[-1])
            if n_left < 0:
                raise _too_large(self.limits.body_bytes)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _in_time(self, work: Awaitable[Result]) -> Result:
        """Wait for body and answer of a request together, at most ``limits.seconds``."""
        task = asyncio.current_task()
        assert task is not None
        loop = task.get_loop()
        # one timer for the oldest request: all have the same limit, and a timer for each costs more than parsing a row
        self._ends[task] = loop.time() + self.limits.seconds
        if self._timed is not loop:
            self._timed = loop
            loop.call_later(self.limits.seconds, self._cancel_late, loop)
        try:
            return await work
        except asyncio.CancelledError as error:
            if error.args != (_LATE,):
                raise
            task.uncancel()
            message = f"The request took more than {self.limits.seconds:g} seconds. Send fewer rows at a time."
            raise RequestError(504, message) from None
        finally:
            self._ends.pop(task, None)

    def _cancel_late(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the requests that are late, and set the timer for the next one."""
        now = loop.time()
        for task in [task for task, end in self._ends.items() if end <= now]:
            del self._ends[task]
            task.cancel(_LATE)
        if self._ends:
            loop.call_at(next(iter(self._ends.values())), self._cancel_late, loop)  # they stand in order of their ends
        else:
            self._timed = None

    async def _in_thread(self, work: Callable[[Check], Result]) -> Result:
        """Run work in a thread. If the request ends first, the work ends at its next check, and counts until then."""
        ended = threading.Event()

        def check() -> None:
            if ended.is_set():
                raise RequestEnded

        in_pool = self._pool.submit(work, check)
        future = asyncio.wrap_future(in_pool)
        try:
            return await asyncio.shield(future)
        finally:
            if not future.done():
                ended.set()
                self.metrics.running += 1
                future.add_done_callback(self._ended)
                in_pool.cancel()  # if it waits for a thread, it never begins

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        self.metrics.running -= 1
        with contextlib.suppress(Exception, asyncio.CancelledError):
            future.result()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _cut_off() -> RequestError:
    return RequestError(400, "The connection was closed before the body was complete.")


def _too_large(limit: int) -> RequestError:
    return RequestError(413, f"The body has more than {limit:,} bytes. Send fewer rows at a time.")
