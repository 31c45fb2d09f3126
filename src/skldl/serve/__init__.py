"""Models as a service: predictions over HTTP, a page to try them, counters. Needs the extra ``serve``."""

from typing import TYPE_CHECKING, Any

from skldl._extras import import_with_extra

if TYPE_CHECKING:
    from skldl.serve._app import make_app
    from skldl.serve._server import check_address, run_server
    from skldl.serve._service import Limits, Service, named_paths

_HOME_OF = {
    "Limits": "_service",
    "Service": "_service",
    "check_address": "_server",
    "make_app": "_app",
    "named_paths": "_service",
    "run_server": "_server",
}

__all__ = ["Limits", "Service", "check_address", "make_app", "named_paths", "run_server"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'skldl.serve' has no attribute {name!r}")
    return getattr(import_with_extra(f"skldl.serve.{_HOME_OF[name]}", "serve"), name)
