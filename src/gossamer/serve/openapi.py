"""What the HTTP interface takes and answers, as JSON schemas, and the page that shows them."""

from __future__ import annotations

from html import escape
from typing import Any

from gossamer.serve.protocol import DATATYPES

Schema = dict[str, Any]


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_SHAPE = _array({"type": "integer"})
_DATATYPE: Schema = {"type": "string", "enum": list(DATATYPES)}
_DATA: Schema = {
    "type": "array",
    "items": {},
    "description": "Elements in C order, flat or nested; null in an answer is a number that JSON does not have.",
}

SCHEMAS: dict[str, Schema] = {
    "Object": {"type": "object"},
    "Error": _object(("error",), error=_TEXT),
    "Server": _object(("name", "version", "extensions"), name=_TEXT, version=_TEXT, extensions=_array(_TEXT)),
    "Live": _object(("live",), live=_FLAG),
    "Ready": _object(("ready",), name=_TEXT, ready=_FLAG),
    "Parameters": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    "TensorMetadata": _object(
        ("name", "datatype", "shape"), name=_TEXT, datatype=_DATATYPE, shape=_SHAPE, parameters=_ref("Parameters")
    ),
    "Model": _object(
        ("name", "platform", "inputs", "outputs"),
        name=_TEXT,
        versions=_array(_TEXT),
        platform=_TEXT,
        inputs=_array(_ref("TensorMetadata")),
        outputs=_array(_ref("TensorMetadata")),
        properties={"type": "object", "additionalProperties": _TEXT},
    ),
    "InputTensor": _object(
        ("name", "shape", "datatype"),
        name=_TEXT,
        shape=_SHAPE,
        datatype=_DATATYPE,
        parameters=_object((), binary_data_size={"type": "integer"}),
        data=_DATA,
    ),
    "RequestedOutput": _object(("name",), name=_TEXT, parameters=_object((), binary_data=_FLAG)),
    "InferenceRequest": _object(
        ("inputs",),
        id=_TEXT,
        parameters={
            "type": "object",
            "properties": {
                "timeout": {"type": "integer", "description": "Microseconds."},
                "binary_data_output": _FLAG,
                "signature": _TEXT,
            },
        },
        inputs=_array(_ref("InputTensor")),
        outputs=_array(_ref("RequestedOutput")),
    ),
    "OutputTensor": _object(
        ("name", "shape", "datatype"),
        name=_TEXT,
        shape=_SHAPE,
        datatype=_DATATYPE,
        parameters=_object((), binary_data_size={"type": "integer"}),
        data=_DATA,
    ),
    "InferenceResponse": _object(
        ("model_name", "outputs"),
        model_name=_TEXT,
        model_version=_TEXT,
        id=_TEXT,
        parameters=_ref("Parameters"),
        outputs=_array(_ref("OutputTensor")),
    ),
    "Index": _array(
        _object(
            ("name",),
            name=_TEXT,
            version=_TEXT,
            state={"type": "string", "enum": ["LOADING", "READY", "UNLOADING", "UNAVAILABLE"]},
            reason=_TEXT,
        )
    ),
}

_BINARY: Schema = {
    "schema": {"type": "string", "format": "binary"},
}

INFERENCE: Schema = {
    "parameters": [
        {
            "name": "Inference-Header-Content-Length",
            "in": "header",
            "required": False,
            "schema": {"type": "integer"},
            "description": "How many bytes of the body are JSON, where raw tensors are behind it.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": _ref("InferenceRequest")},
            "application/octet-stream": _BINARY,
        },
    },
}
"""Of the route of inference, what its function does not say."""


def answers(name: str, *errors: int, binary: bool = False) -> dict[int | str, Schema]:
    """The ``responses`` of a route: the schema ``name``, and errors with these statuses."""
    content = {"application/json": {"schema": _ref(name)}} | ({"application/octet-stream": _BINARY} if binary else {})
    return {
        200: {"description": "Done", "content": content},
        **{
            status: {"description": _REASONS[status], "content": {"application/json": {"schema": _ref("Error")}}}
            for status in errors
        },
    }


_REASONS = {
    400: "The request is wrong",
    401: "The token is missing or wrong",
    403: "Clients may not do that here",
    404: "There is no such model",
    413: "The request is too large",
    500: "The model failed",
    503: "Not now: see Retry-After",
    504: "The deadline has passed",
}


def page(description: Schema) -> str:
    """A description of an interface as a page that needs nothing from elsewhere."""
    rows = [
        f"<tr><td><code>{method.upper()}</code><td><code>{escape(path)}</code><td>{escape(route.get('summary', ''))}"
        f"<td>{escape(route.get('description', ''))}<td>{escape(' '.join(route['responses']))}"
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    ]
    title = escape(f"{description['info']['title']} {description['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        "<style>body{font:16px system-ui;margin:2em;max-width:75em}td,th{padding:.3em .8em;text-align:left;"
        "vertical-align:top}tr:nth-child(even){background:#8881}</style>"
        f"<h1>{title}</h1><p>{escape(description['info']['description'])}"
        '<p>All of it, for tools: <a href="openapi.json">openapi.json</a>'
        f"<table><tr><th>Method<th>Path<th>What<th><th>Answers{''.join(rows)}</table></html>"
    )
