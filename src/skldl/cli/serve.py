"""``skldl serve``: serve predictions over HTTP, with a page to try the model."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from skldl.cli._options import Flag
from skldl.exceptions import DataError, UnknownNameError
from skldl.serve import Limits, Service, check_address, make_app, run_server

KEY_VARIABLE = "SKLDL_API_KEY"
_POSITIVE = Parameter(validator=validators.Number(gt=0))


def serve(
    model: Path | None = None,
    /,
    *,
    models: Annotated[list[str] | None, Parameter(name="--model", negative="")] = None,
    host: str = "127.0.0.1",
    port: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65535))] = 8000,
    max_body: Annotated[float, _POSITIVE] = Limits.body_bytes // 2**20,
    max_rows: Annotated[int, _POSITIVE] = Limits.rows,
    timeout: Annotated[float, _POSITIVE] = Limits.seconds,
    max_concurrent: Annotated[int, _POSITIVE] = Limits.concurrent,
    max_columns: Annotated[int, _POSITIVE] = Limits.columns,
    no_key: Flag = False,
    quiet: Flag = False,
) -> int:
    """Serve predictions over HTTP, with a page to try the model.

    POST /predict takes JSON records, CSV or Parquet and answers in the same format with the columns of skldl predict;
    GET / is the page; /schema, /health, /ready, /metrics and /openapi.json describe the rest. For instance:

        skldl serve faces.skldl
        curl localhost:8000/predict --json '[{"age": 31, "town": "Ulm", "smoker": "no"}]'

    If the environment variable SKLDL_API_KEY is set, requests must send it. SIGHUP reads the model files again, SIGTERM
    ends the service when all requests are answered. docs/deployment.md describes how to deploy it.

    Parameters
    ----------
    model
        A model that skldl fit wrote; its name is that of the file.
    models
        Further models as name=path, at /models/NAME/predict; may be given several times.
    host
        Address to listen on. Addresses other than those of this computer need SKLDL_API_KEY, or --no-key.
    port
        Port; 0 chooses a free one, which the log names.
    max_body
        Largest body in MiB.
    max_rows
        Largest number of rows in a body.
    timeout
        Seconds that a request may take.
    max_concurrent
        Number of requests that are answered at the same time; others are rejected with a time after which to retry.
    max_columns
        Largest number of columns in a CSV or Parquet body, or twice those of the model if these are more.
    no_key
        Serve without a key on any address; use it only where something else controls access.
    quiet
        Log no requests, only events of the service.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    check_address(host, key, no_key=no_key)
    limits = Limits(int(max_body * 2**20), max_rows, timeout, max_concurrent, max_columns)
    service = Service(_named_paths(model, models or []), limits)
    app = make_app(service, key=key, log_requests=not quiet, any_host=no_key)
    if not run_server(app, service, host=host, port=port):
        raise DataError(
            f"--host {host} --port {port} cannot be taken: another process may listen there. Choose another."
        )
    return 0


def _named_paths(default: Path | None, named: list[str]) -> dict[str, Path]:
    """Files of the models by name: the default one first, under the name of its file, then those as ``name=path``."""
    paths = {} if default is None else {default.stem: default}
    for word in named:
        name, sign, path = word.partition("=")
        if not (name and sign and path) or not name.replace("-", "_").isidentifier():
            raise DataError(f"--model {word}: write name=path, with a name of letters, digits, - and _.")
        if name in paths:
            raise DataError(f"Two models are called {name!r}. Give one of them another name: --model NAME=PATH.")
        paths[name] = Path(path)
    if not paths:
        raise UnknownNameError("Name a model file, or --model name=path.")
    return paths
