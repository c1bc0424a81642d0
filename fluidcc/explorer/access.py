"""Who may see the page: the browsers of this machine, and with another host those that reach it.

A page of a stranger can send requests to this one from the same browser, also by a name of its own
that it lets stand for this machine. So only requests by a name of this machine are answered, and of
those that tell the page they come from (as websockets do) only this page's own.
"""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.routing import Router
from tornado.web import HTTPError, RequestHandler

HERE = "127.0.0.1"
_OWN = ("localhost", HERE, "::1")


def is_local(host: str) -> bool:
    """Return whether an address or a name is of this machine alone."""
    ip = _address(host)
    return host == "localhost" if ip is None else bool(ip.is_loopback)


def url(host: str, port: int) -> str:
    """Return where a page is found that listens on a host."""
    ip = _address(host)
    name = socket.gethostname() if ip is not None and ip.is_unspecified else host
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def guard(server: Any, host: str) -> None:
    """Make a server of Bokeh's that listens on a host refuse what others' pages ask of it."""
    server._http.request_callback = _Guard(server._tornado, host)
    server._tornado._websocket_origins = {"*"}  # the guard has looked at them


def admitted(headers: HTTPHeaders, host: str) -> bool:
    """Return whether a request may be answered by a page that listens on a host."""
    names = headers.get_list("Host")
    origins = headers.get_list("Origin") + headers.get_list("Sec-WebSocket-Origin")
    try:
        asked = urlsplit(f"http://{names[0]}")
        ours = len(names) == 1 and _named(asked.hostname or "", host)
        return ours and all(_place(urlsplit(origin)) == _place(asked) for origin in origins)
    except (IndexError, ValueError):  # no host, or none that can be read
        return False


class _Guard(Router):
    def __init__(self, application: Any, host: str) -> None:
        self.application, self.host = application, host

    def find_handler(self, request: HTTPServerRequest, **more: Any) -> Any:
        if admitted(request.headers, self.host):
            request.host = re.sub(r"\[.*\]", "localhost", request.host)  # Panel splits it at colons
            return self.application.find_handler(request, **more)
        return self.application.get_handler_delegate(request, _Refused)


class _Refused(RequestHandler):
    def prepare(self) -> None:
        raise HTTPError(403, "the request names another host, or comes from another page")


def _named(name: str, host: str) -> bool:
    """Whether a page that listens on a host may be asked for by a name."""
    if name in (*_OWN, host.lower()):
        return True
    ip = _address(host)
    everywhere = ip is not None and ip.is_unspecified
    # No name of a stranger can stand for an address that is written out.
    return not is_local(host) and (
        name in (socket.gethostname().lower(), socket.getfqdn().lower())
        or (everywhere and _address(name) is not None)
    )


def _place(of: Any) -> tuple[str, str | None, int]:
    return of.scheme, of.hostname, of.port or 80


def _address(host: str) -> Any:
    try:
        return ip_address(host)
    except ValueError:
        return None
