"""Models to serve, a client without a network, and the browser that the tests of reports use."""

import importlib.util
from pathlib import Path

import pytest

import skldl
from skldl.serve import Limits, Service, make_app
from skldl.tabular import fit_table

_spec = importlib.util.spec_from_file_location("report_conftest", Path(__file__).parents[1] / "report" / "conftest.py")
_report = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_report)
browser = _report.browser

LABELS = ["emo_joy", "emo_anger", "emo_fear"]


@pytest.fixture(scope="session")
def rows(faces):
    """The faces without labels, as records of JSON."""
    table = faces.drop(columns=LABELS)
    return table.astype(object).where(table.notna(), None).to_dict("records")


@pytest.fixture(scope="session")
def numbers_model(faces, tmp_path_factory):
    """Labels that are numbers, features that are numbers alone."""
    table = faces[["age"]].assign(height=range(len(faces))).fillna(40.0)
    table = table.assign(**{str(place): faces[name] for place, name in enumerate(LABELS, start=1)})
    fitted = fit_table(table, ["1", "2", "3"], model="sa-bfgs")
    return skldl.save(fitted.model, tmp_path_factory.mktemp("n") / "numbers.skldl", description=fitted.description)


@pytest.fixture
def post():
    """Send a POST request to an application whose body comes from an ASGI function; return status and body."""

    async def sent(app, receive, path="/predict"):
        messages = []

        async def send(message):
            messages.append(message)

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        await app(scope, receive, send)
        return messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:])

    return sent


@pytest.fixture
def make_client(faces_model, numbers_model):
    testclient = pytest.importorskip("starlette.testclient", reason="needs the extra serve, and httpx")
    services = []

    def make(*, limits=None, paths=None, raise_errors=True, log_requests=False, **options):
        service = Service(paths or {"faces": faces_model, "numbers": numbers_model}, limits or Limits())
        services.append(service)
        app = make_app(service, log_requests=log_requests, **options)
        client = testclient.TestClient(app, base_url="http://localhost", raise_server_exceptions=raise_errors)
        client.service = service
        return client

    yield make
    for service in services:
        service.close()


@pytest.fixture
def client(make_client):
    return make_client()
