"""The state of the service and the work behind its routes: models, limits, counters, reload."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
from starlette.types import Receive

from skldl.serve._bodies import (
    JSON,
    NotInPieces,
    format_of_answer,
    format_of_body,
    read_records,
    read_table,
    record_pieces,
    write_answer,
)
from skldl.serve._deadlines import Deadlines
from skldl.serve._errors import Refusal
from skldl.serve._logs import log
from skldl.serve._metrics import Metrics
from skldl.serve._model import Answer, ServedModel
from skldl.serve._query import DEFAULTS, read_query

SMALL_BODY = 2**15
"""Bodies up to this size are parsed in the event loop: handing them to a thread would take longer."""
FEW_ROWS = 64
Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What one request may take.

    Attributes
    ----------
    body_bytes : int
        Size of a body.
    rows : int
        Rows in a body.
    seconds : float
        Time from the first byte of a request to its answer.
    concurrent : int
        Requests that are answered at the same time; further ones are sent away with status 503.

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


class Service:
    """Models by name, and what their requests share.

    Parameters
    ----------
    paths : mapping
        From the name of each model to its file; the first one is the default.
    limits : Limits
        What one request may take.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import skldl
    >>> from skldl.serve import Service
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs", folds=2)
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
        self._deadlines = Deadlines(self.limits.seconds)
        self.models = self._load()
        self.draining = False
        self._pool = ThreadPoolExecutor(max_workers=max(2, os.cpu_count() or 2), thread_name_prefix="predict")
        self._reloading = asyncio.Lock()

    def _load(self) -> dict[str, ServedModel]:
        return {name: ServedModel(path, name) for name, path in self.paths.items()}

    async def reload(self) -> bool:
        """Read all model files again; requests that run keep the models that they began with.

        Returns
        -------
        bool
            Whether it succeeded. If one file cannot be read, all models stay as they are.
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
            raise Refusal(404, f"There is no model {name[:100]!r}. There are {', '.join(self.models)}.")
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
            Gives the body, as in ASGI.

        Returns
        -------
        body : bytes
            The answer.
        media_type : str
            How it is written.
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
        if given == JSON and len(body) <= SMALL_BODY and not keep:
            records = read_records(body, self.limits.rows)
            if len(records) == 1 and wanted == JSON and model.intervals is None:
                if (predicted_one := model.predict_one(records[0])) is not None:
                    self.metrics.rows(model.name, 1, predicted_one[1])
                    return orjson.dumps(predicted_one[:1]), JSON, 1
            elif len(records) <= FEW_ROWS:
                answer = model.predict_plain(records)
                if answer is not None:
                    content = write_answer(model.with_intervals(answer, query.level, query.covers), wanted, digits)
        if answer is None:

            def predicted() -> tuple[Answer, bytes]:
                if given != JSON:
                    table = read_table(body, given, columns=model.columns, keep=keep, max_rows=self.limits.rows)
                    found = model.predict_frame(table, keep)
                elif records is not None:
                    found = model.predict_records(records, keep)
                else:
                    found = self._predict_long(model, body, keep)
                return found, write_answer(model.with_intervals(found, query.level, query.covers), wanted, digits)

            result = await self._in_thread(predicted)
            answer, content = result
        self.metrics.rows(model.name, answer.n_rows, answer.unusual)
        return content, wanted, answer.n_rows

    def _predict_long(self, model: ServedModel, body: bytes, keep: Sequence[str]) -> Answer:
        """Predict for a long JSON body, in pieces if possible."""
        if not keep:
            with contextlib.suppress(NotInPieces):
                if (found := model.predict_pieces(record_pieces(body, self.limits.rows))) is not None:
                    return found
        return model.predict_records(read_records(body, self.limits.rows), keep)

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
            raise Refusal(422, f"The body has {len(records)} rows, and one is explained at a time.")
        return await self._in_thread(lambda: model.explain(records[0]))

    async def body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body, unless it is too large.

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
        most = self.limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if len(length) > 20 or not length.isdigit() or int(length) > most:
            raise _too_large(most)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refusal(415, "Compressed bodies are not taken. Send it without Content-Encoding.")
        message = await receive()
        body = message.get("body", b"")
        if message.get("more_body"):
            body += await self._rest(receive, most - len(body))
        elif message["type"] == "http.disconnect":
            raise _cut_off()
        if len(body) > most:
            raise _too_large(most)
        if not body or body.isspace():
            raise Refusal(400, "The body is empty. Send rows as JSON, CSV or Parquet.")
        return body

    async def _rest(self, receive: Receive, most: int) -> bytes:
        """The rest of a body."""
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _cut_off()
            parts.append(message.get("body", b""))
            most -= len(parts[-1])
            if most < 0:
                raise _too_large(self.limits.body_bytes)
            more = message.get("more_body", False)
        return b"".join(parts)

    async def _in_time(self, work: Awaitable[Result]) -> Result:
        """Wait for the answer to a request, body and work together, as long as it may take."""
        try:
            return await self._deadlines.wait_for(work)
        except TimeoutError:
            message = f"The request took more than {self.limits.seconds:g} seconds. Send fewer rows at a time."
            raise Refusal(504, message) from None

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        """Run work in a thread; if the request ends before, its place is free only when the work has ended."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(future)
        finally:
            if not future.done():
                self.metrics.running += 1
                future.add_done_callback(self._ended)

    def _ended(self, future: "asyncio.Future[Any]") -> None:
        self.metrics.running -= 1
        with contextlib.suppress(Exception):
            future.result()

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _cut_off() -> Refusal:
    return Refusal(400, "The connection was closed before the body was complete.")


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"The body has more than {most:,} bytes. Send fewer rows at a time.")
