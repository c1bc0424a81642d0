"""Who may see the page: browsers of this machine, and no page of a stranger in them."""

import asyncio
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.httputil import HTTPHeaders
from tornado.websocket import websocket_connect

import fluidcc as fc
from fluidcc.cli import main
from fluidcc.cli.parser import make_parser
from fluidcc.explorer.access import admitted, url
from fluidcc.explorer.app import serve

# What a page that listens on a host is asked with (its name, and the page that asks), and whether
# it answers.
ASKED = [
    ("127.0.0.1", "localhost:5006", None, True), ("127.0.0.1", "127.0.0.1:5006", None, True),
    ("127.0.0.1", "[::1]:5006", None, True), ("127.0.0.1", "LOCALHOST:8000", None, True),
    ("127.0.0.1", "localhost:5006", "http://localhost:5006", True),
    ("127.0.0.1", "localhost", "http://localhost:80", True),
    ("127.0.0.1", "localhost:5006", "http://127.0.0.1:5006", False),
    ("127.0.0.1", "localhost:5006", "http://localhost:3000", False),
    ("127.0.0.1", "localhost:5006", "https://localhost:5006", False),
    ("127.0.0.1", "localhost:5006", "http://evil.example", False),
    ("127.0.0.1", "localhost:5006", "http://localhost:5006.evil.example", False),
    ("127.0.0.1", "localhost:5006", "null", False), ("127.0.0.1", "localhost:5006", "", False),
    ("127.0.0.1", "evil.example:5006", None, False), ("127.0.0.1", "10.0.0.7:5006", None, False),
    ("127.0.0.1", "evil.example:5006", "http://evil.example:5006", False),
    ("127.0.0.1", "localhost.evil.example", None, False), ("127.0.0.1", "", None, False),
    ("127.0.0.1", "localhost@evil.example", None, False), ("127.0.0.1", None, None, False),
    ("127.0.0.1", "localhost:99999999", "http://localhost:99999999", False),
    ("0.0.0.0", "10.0.0.7:5006", None, True), ("0.0.0.0", "evil.example:5006", None, False),
    ("0.0.0.0", "10.0.0.7:5006", "http://10.0.0.7:5006", True),
    ("0.0.0.0", "10.0.0.7:5006", "http://evil.example", False),
    ("10.0.0.7", "10.0.0.7:5006", None, True), ("10.0.0.7", "10.0.0.8:5006", None, False),
]  # fmt: skip


@pytest.mark.parametrize(("listens", "name", "origin", "answered"), ASKED)
def test_who_is_answered(listens: str, name: Any, origin: Any, answered: bool) -> None:
    for key in ("Origin", "Sec-WebSocket-Origin"):
        headers = HTTPHeaders({} if name is None else {"Host": name})
        if origin is not None:
            headers[key] = origin
        assert admitted(headers, listens) == answered
    headers.add("Host", "evil.example")
    assert not admitted(headers, listens)


async def _codes(port: int) -> list[Any]:
    """What the server says to its own page and to others, by HTTP and by websocket."""
    client, here, found = AsyncHTTPClient(), f"127.0.0.1:{port}", list[Any]()
    for path in ("/", "/static/js/bokeh.min.js", "/autoload.js?bokeh-autoload-element=1"):
        for headers in ({}, {"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            asked = HTTPRequest(f"http://{here}{path}", headers=headers, request_timeout=120)
            found.append((await client.fetch(asked, raise_error=False)).code)
    for origin in (f"http://{here}", "http://evil.example"):
        asked = HTTPRequest(f"ws://{here}/ws", headers={"Origin": origin})
        try:  # without a session's token the socket opens, and is closed then
            (await websocket_connect(asked, subprotocols=["bokeh", "no token"])).close()
            found.append(101)
        except HTTPClientError as error:
            found.append(error.code)
    return found


def test_a_stranger_is_refused_by_the_server_itself() -> None:
    server = serve(port=0)
    server.start()
    try:
        assert make_parser().parse_args(["explore"]).host == "127.0.0.1"
        (socket,) = server._http._sockets.values()
        assert socket.getsockname() == ("127.0.0.1", server.port)
        codes = server.io_loop.run_sync(lambda: asyncio.wait_for(_codes(server.port), 200))
    finally:
        server.stop()
    assert codes == [200, 403, 403] * 3 + [101, 403]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of tornado's bind
def test_other_hosts_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(fc.errors.FluidccWarning, match="whoever reaches 0.0.0.0 can use this page"):
        serve(port=0, host="0.0.0.0").stop()
    for host, says in (("10.255.255.1", "is no address of this"), ("", "host is ''")):
        assert main(["explore", "p1", "--host", host, "--no-browser"]) == 2
        assert says in capsys.readouterr().err
    assert url("::1", 5) == "http://[::1]:5"
    assert "0.0.0.0" not in url("0.0.0.0", 5)
