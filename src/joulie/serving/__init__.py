"""HTTP as every process of Joulie serves it: bounded in connections, time and memory, with metrics and probes.

May import: `errors`. A server shares the event loop with what its process is for, so nothing that a client does may
cost more than a bounded part of one turn of the loop: see `guard` for what is bounded, `page` for pages of metrics.
"""

from joulie.serving.bare import bare_server
from joulie.serving.guard import ConnectionLimits
from joulie.serving.page import Page, in_pieces
from joulie.serving.server import Check, HttpServer, app_server, checked, serve
from joulie.serving.sharing import Share

__all__ = [
    "Check",
    "ConnectionLimits",
    "HttpServer",
    "Page",
    "Share",
    "app_server",
    "bare_server",
    "checked",
    "in_pieces",
    "serve",
]
