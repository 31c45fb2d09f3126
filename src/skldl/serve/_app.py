"""Routes, page and middleware of the service: host, key, number of requests, counters and logs.

Starlette was chosen because it is the layer below FastAPI: routes and requests, without the validation by pydantic,
which would repeat the checks of `skldl.tabular` with other error messages. Litestar has more dependencies than the
service needs. The middleware is plain ASGI, since middleware classes of Starlette cost more than a prediction.
"""

import base64
import hashlib
import hmac
import re
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from importlib import resources
from itertools import count
from typing import Any
from uuid import uuid4

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skldl.exceptions import DataError
from skldl.serve._errors import RequestError, error_body
from skldl.serve._logs import log, log_request
from skldl.serve._openapi import describe
from skldl.serve._service import Service

OPEN_ROUTES = ("/", "/health", "/ready")
"""Paths that need no key: the page has no data and asks the user for a key."""
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(service: Service, *, key: str = "", log_requests: bool = True, any_host: bool = False) -> ASGIApp:
    """Build the ASGI application.

    Parameters
    ----------
    service : Service
        Models, limits and counters.
    key : str, default=""
        The key that requests must send as ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``; empty for none.
    log_requests : bool, default=True
        Whether each request is logged; errors of the server always are.
    any_host : bool, default=False
        Whether requests for any host name are answered. Otherwise, without a key, only those for this computer, so
        that a foreign web page cannot reach the service through a name that resolves to this host.

    Returns
    -------
    callable
        The application.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import skldl
    >>> from skldl.serve import Service, make_app
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.skldl"
    ...     _ = skldl.save(fitted.model, path, description=fitted.description)
    ...     app = make_app(Service({"moods": path}))
    >>> callable(app)
    True
    """
    page, policy = _page_and_policy()

    async def show_page(request: Request) -> Response:
        headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
        }
        return Response(page, media_type="text/html", headers=headers)

    async def health(request: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(request: Request) -> Response:
        status = "draining" if service.draining else "ready"
        return _json({"status": status, "models": list(service.models)}, 503 if service.draining else 200)

    async def metrics(request: Request) -> Response:
        loaded = {name: model.loaded.timestamp() for name, model in service.models.items()}
        return Response(service.metrics.text(loaded), media_type="text/plain; version=0.0.4")

    async def openapi(request: Request) -> Response:
        return _json(describe(service.models))

    async def models(request: Request) -> Response:
        return _json([{"name": name, "schema": f"/models/{name}/schema"} for name in service.models])

    async def schema(request: Request) -> Response:
        return _json(service.model(request.path_params.get("name")).schema())

    async def explain(request: Request) -> Response:
        model = service.model(request.path_params.get("name"))
        request.scope["skldl_model"] = model
        _check_capacity(service)
        return _json(await service.explain(model, dict(request.scope["headers"]), request.receive))

    gets: dict[str, Endpoint] = {
        "/": show_page,
        "/health": health,
        "/ready": ready,
        "/metrics": metrics,
        "/openapi.json": openapi,
        "/models": models,
        "/schema": schema,
        "/models/{name}/schema": schema,
    }
    routes = [Route(path, _answering_errors(work, path), methods=["GET"]) for path, work in gets.items()]
    for prefix in ("", "/models/{name}"):
        routes.append(Route(f"{prefix}/explain", _answering_errors(explain, f"{prefix}/explain"), methods=["POST"]))
        routes.append(Route(f"{prefix}/predict", _only_post, methods=["GET"]))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_route})
    app.router.redirect_slashes = False
    hosts = None if key or any_host else LOCAL_HOSTS
    return Gate(app, service, key=key, hosts=hosts, log_requests=log_requests)


class Gate:
    """Middleware of all requests: checks host and key, counts and logs, and hides tracebacks.

    An empty key means none; ``hosts`` are the names that a request may have, None for any.
    """

    def __init__(
        self, app: ASGIApp, service: Service, *, key: str, hosts: tuple[str, ...] | None, log_requests: bool
    ) -> None:
        self._app, self._service, self._hosts, self._log_requests = app, service, hosts, log_requests
        self._key = key.encode()
        self._numbers, self._prefix = count(1), uuid4().hex[:8]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        number = f"{self._prefix}-{next(self._numbers)}"
        status = rows = 0
        service, path, method = self._service, scope["path"], scope["method"]

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._mark(message["headers"], number)
            await send(message)

        service.metrics.running += 1
        try:
            headers = dict(scope["headers"])
            rejected = self._rejection(path, headers)
            if rejected is not None:
                await _error_response(rejected)(scope, receive, sending)
            elif method == "POST" and (route := _predict_route(path)) is not None:
                # without the routing and the responses of Starlette, which take longer than a prediction
                scope["skldl_route"], name = route
                try:
                    model = scope["skldl_model"] = service.model(name)
                    _check_capacity(service)
                    content, kind, rows = await service.predict(model, headers, scope["query_string"], receive)
                except (RequestError, DataError) as error:
                    await _answer_of(error, scope)(scope, receive, sending)
                else:
                    fields = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(content))]
                    self._mark(fields, number)
                    status = 200
                    await send({"type": "http.response.start", "status": 200, "headers": fields})
                    await send({"type": "http.response.body", "body": content})
            else:
                await self._app(scope, receive, sending)
        except Exception:
            log("error", "exception", request=number, traceback=traceback.format_exc())
            if not status:
                rejected = RequestError(500, f"The service failed. See its log, request {number}.")
                await _error_response(rejected)(scope, receive, sending)
        finally:
            service.metrics.running -= 1
            seconds = time.perf_counter() - begun
            asked = scope["skldl_model"].name if "skldl_model" in scope else ""
            service.metrics.request(scope.get("skldl_route", "other"), asked, status, seconds)
            if self._log_requests:
                log_request(number, method, path, status, 1000 * seconds, rows, asked)

    def _mark(self, headers: list[tuple[bytes, bytes]], number: str) -> None:
        """Add the number of the request, and ask for a new connection while the service ends."""
        headers.append((b"x-request-id", number.encode()))
        if self._service.draining:
            headers.append((b"connection", b"close"))

    def _rejection(self, path: str, headers: Mapping[bytes, bytes]) -> RequestError | None:
        if self._hosts is not None:
            name = _host_name(headers.get(b"host", b"localhost"))
            if name not in self._hosts:
                return RequestError(
                    421,
                    f"The service answers for localhost alone, not for {name[:100]!r}. Start it with a key, or "
                    "skldl serve with --no-key.",
                )
        if self._key and path not in OPEN_ROUTES:
            sent = headers.get(b"x-api-key", b"")
            words = headers.get(b"authorization", b"").split(None, 1)
            if len(words) == 2 and words[0].lower() == b"bearer":
                sent = words[1].strip()
            if not hmac.compare_digest(sent, self._key):
                return RequestError(
                    401,
                    "A key is needed: send it as Authorization: Bearer KEY or X-API-Key: KEY.",
                    {"www-authenticate": "Bearer"},
                )
        return None


@lru_cache(maxsize=64)  # requests have the same few hosts
def _host_name(host: bytes) -> str:
    """The header Host without its port."""
    text = host.decode("latin-1").lower()
    return text if text.endswith("]") else text.rpartition(":")[0] or text


def _predict_route(path: str) -> tuple[str, str | None] | None:
    """Return route and model of a path for predictions (None: the default model); None for other paths."""
    if path == "/predict":
        return "/predict", None
    parts = path.split("/")
    if len(parts) == 4 and parts[1] == "models" and parts[3] == "predict":
        return "/models/*/predict", parts[2]
    return None


def _check_capacity(service: Service) -> None:
    """Reject a request if too many are running."""
    if service.metrics.running > service.limits.concurrent:
        busy = f"More than {service.limits.concurrent} requests are running. Try again in a second."
        raise RequestError(503, busy, {"retry-after": "1"})


def _answering_errors(work: Endpoint, path: str) -> Endpoint:
    """Wrap an endpoint so that its errors become responses."""

    async def answered(request: Request) -> Response:
        request.scope["skldl_route"] = path.replace("{name}", "*")  # Starlette has the route only since 1.8
        try:
            return await work(request)
        except (RequestError, DataError) as error:
            return _answer_of(error, request.scope)

    return answered


def _answer_of(error: RequestError | DataError, scope: Scope) -> Response:
    if isinstance(error, RequestError):
        return _error_response(error)
    model = scope.get("skldl_model")
    return _json(error_body(error, model.encoder.kinds_ if model else None), 422)


async def _only_post(request: Request) -> Response:
    rejected = RequestError(405, "Send rows by POST: JSON records, CSV or Parquet.", {"allow": "POST"})
    return _error_response(rejected)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        headers = error.headers or {}
        return _error_response(
            RequestError(405, f"{request.method} is not known here. Use {dict(headers).get('Allow')}.")
        )
    return _error_response(
        RequestError(error.status_code, "There is no such address. GET /openapi.json lists what there is.")
    )


def _error_response(rejected: RequestError) -> Response:
    return _json(error_body(rejected), rejected.status, rejected.headers)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(content, default=str), status, headers, media_type="application/json")


def _page_and_policy() -> tuple[bytes, str]:
    """The page at ``/``, one HTML file, and the Content-Security-Policy that allows only its own style and script."""
    text = resources.files("skldl.serve").joinpath("page.html").read_text(encoding="utf-8")
    script, style = (_hashes(text, element) for element in ("script", "style"))
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self' blob:; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), policy


def _hashes(page: str, element: str) -> str:
    contents = re.findall(rf"<{element}>(.*?)</{element}>", page, flags=re.S)
    digests = (base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() for content in contents)
    return " ".join(f"'sha256-{digest}'" for digest in digests)
