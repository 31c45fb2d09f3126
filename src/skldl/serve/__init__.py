"""Models as a service: predictions over HTTP, a page to try them, counters. Needs the extra ``serve``."""

from typing import TYPE_CHECKING

from skldl.utils.dependencies import lazy_names

if TYPE_CHECKING:
    from skldl.serve._app import make_app
    from skldl.serve._server import check_address, run_server
    from skldl.serve._service import Limits, Service

__all__ = ["Limits", "Service", "check_address", "make_app", "run_server"]

__getattr__ = lazy_names(
    __name__,
    serve={
        "_app": ("make_app",),
        "_server": ("check_address", "run_server"),
        "_service": ("Limits", "Service"),
    },
)
