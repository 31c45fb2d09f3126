"""OpenAPI description of the service, from the schemas of its models."""

from collections.abc import Mapping
from typing import Any

import skldl
from skldl.data._cells import BOOLEAN, CATEGORY, NUMBER
from skldl.serve._bodies import CSV, DIGITS, JSON, PARQUET
from skldl.serve._model import ServedModel
from skldl.tabular._prediction import LEVEL

_ERRORS = {
    "400": "The body or a parameter cannot be read.",
    "401": "The key is missing or wrong.",
    "406": "The answer cannot be written in the format that the header Accept asks for.",
    "413": "The body is too large.",
    "415": "The body is of an unknown type.",
    "422": "A cell or column is wrong: the error names row, column and what to send.",
    "503": "Too many requests are running.",
    "504": "The request took too long.",
}


def describe(models: Mapping[str, ServedModel]) -> dict[str, Any]:
    """Describe all routes in OpenAPI 3.1; the first model is the default one."""
    paths: dict[str, Any] = {
        "/": _get("A page to try the model", "text/html"),
        "/health": _get("Whether the process runs"),
        "/ready": _get("Whether requests are accepted; 503 while the service ends"),
        "/metrics": _get("Counters in the text format of Prometheus", "text/plain"),
        "/models": _get("Names of the models"),
        "/schema": _get("Features and labels of the default model"),
    }
    schemas: dict[str, Any] = {"Error": _ERROR}
    for number, (name, model) in enumerate(models.items()):
        schemas[f"{name}.row"], schemas[f"{name}.prediction"] = _row(model), _prediction(model)
        for prefix in (f"/models/{name}", "") if number == 0 else (f"/models/{name}",):
            paths[f"{prefix}/predict"] = {"post": _predict(name)}
            paths[f"{prefix}/explain"] = {"post": _explain(name)}
        paths[f"/models/{name}/schema"] = _get(f"Features and labels of {name}")
    return {
        "openapi": "3.1.0",
        "info": {"title": "scikit-ldl", "version": skldl.__version__, "description": "Predicted label distributions."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def _get(summary: str, kind: str = JSON) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": {"200": {"description": summary, "content": {kind: {}}}}}}


def _errors() -> dict[str, Any]:
    content = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {status: {"description": text, "content": content} for status, text in _ERRORS.items()}


def _body(name: str) -> dict[str, Any]:
    row = {"$ref": f"#/components/schemas/{name}.row"}
    rows = {"oneOf": [{"type": "array", "items": row}, row]}
    return {"required": True, "content": {JSON: {"schema": rows}, CSV: {}, PARQUET: {}}}


def _predict(name: str) -> dict[str, Any]:
    answer = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}.prediction"}}
    answers = {
        "description": "One prediction for each row",
        "content": {JSON: {"schema": answer}, CSV: {}, PARQUET: {}},
    }
    return {
        "summary": f"Predict a distribution for each row with {name}",
        "parameters": [
            _parameter(
                "format",
                "json, csv or parquet: format of the answer; by default that of the request or of the header Accept",
            ),
            _parameter("keep", "columns to copy to the answer, separated by commas"),
            _parameter(
                "level", f"probability of coverage of the intervals, by default {LEVEL}, if the model has intervals"
            ),
            _parameter(
                "covers",
                "what the intervals are for, if the model was made from votes: given (the default), the shares of as "
                "many votes on a new row, or true, the distribution behind the votes",
            ),
            _parameter("digits", f"significant digits of numbers in CSV, by default {DIGITS}"),
        ],
        "requestBody": _body(name),
        "responses": {"200": answers, **_errors()},
    }


def _explain(name: str) -> dict[str, Any]:
    row = {"schema": {"$ref": f"#/components/schemas/{name}.row"}}
    errors = {status: entry for status, entry in _errors().items() if status != "406"}  # the answer is always JSON
    return {
        "summary": f"Explain the prediction of {name} for one row",
        "requestBody": {"required": True, "content": {JSON: row}},
        "responses": {"200": {"description": "Prediction and contributions", "content": {JSON: {}}}, **errors},
    }


def _parameter(name: str, meaning: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": meaning, "schema": {"type": "string"}}


def _row(model: ServedModel) -> dict[str, Any]:
    properties = {}
    for feature in model.schema()["features"]:
        kind = {NUMBER: "number", BOOLEAN: "boolean"}.get(feature["type"], "string")
        entry: dict[str, Any] = {"type": [kind, "null"], "description": feature["type"]}
        if feature["type"] == CATEGORY:
            entry["examples"] = feature["categories"][:20]
        properties[feature["name"]] = entry
    return {"type": "object", "properties": properties, "required": list(properties)}


def _prediction(model: ServedModel) -> dict[str, Any]:
    names = model.schema()["answer"]
    top = names[len(model.labels)]
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "enum": model.labels} if name == top else {"type": "number"} for name in names
        },
    }


_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "row": {"type": "integer", "description": "Counted from 1."},
                "column": {"type": "string"},
                "hint": {"type": "string"},
            },
            "required": ["message"],
        }
    },
}
