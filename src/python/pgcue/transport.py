"""Sends one HTTP call, with timeouts and retries."""
from __future__ import annotations

import contextlib
import copy
import http.client
import json
import os
import random
import re
import select
import socket
import threading
import time
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, Generic, Iterator, List, Mapping, Optional, Set, TypeVar
from urllib.parse import quote, urlencode, urlsplit

LONGEST_WAIT = 60.0
"""Maximum wait before a retry, in seconds; if the service asks for more, the call fails."""
PASSING = (408, 429, 502, 503, 504)
"""Statuses after which a retry may succeed."""

Self = TypeVar("Self", bound="Transport")
Page = TypeVar("Page", bound=Mapping[str, Any])
Item = TypeVar("Item")


class ApiError(Exception):
    """A call that failed. `code` is the service's, such as `cue_not_found`, or one of

    - `unreachable`: the connection failed or broke
    - `timeout`: no response in time
    - `unsendable`: the key or a header contains a character that headers cannot contain; nothing was sent
    - `closed`: the client is closed
    - `unexpected_answer`: the response did not come from the service, but for example from a proxy
    """

    def __init__(
        self, status: int, code: str, message: str, detail: Optional[List[Dict[str, Any]]] = None, *,
        request_id: Optional[str] = None, retry_after: Optional[float] = None, sent: bool = True,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status  # 0 without a response
        self.code = code
        self.message = message
        self.detail = detail  # with 422: the invalid fields
        self.request_id = request_id
        self.retry_after = retry_after  # seconds
        self.sent = sent  # False if the request cannot have reached the service


class Transport:
    """Calls one service with one key. Threads may share it. Without arguments, PGCUE_BASE_URL and PGCUE_API_KEY are used."""

    def __init__(
        self, base_url: Optional[str] = None, api_key: Optional[str] = None, *, timeout: float = 30.0, retries: int = 3
    ) -> None:
        self.base_url = (base_url or os.environ.get("PGCUE_BASE_URL") or "http://localhost:8080").rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self._api_key = os.environ.get("PGCUE_API_KEY", "") if api_key is None else api_key
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"base_url must be a URL that starts with http:// or https://, not {self.base_url}")
        self._path = url.path
        self._connections = _Connections(url.scheme, url.hostname, url.port)
        self._headers({})

    def using(
        self: Self, *, api_key: Optional[str] = None, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> Self:
        """Returns a client with other options, which shares the connections of this one."""
        other = copy.copy(self)
        other._api_key = self._api_key if api_key is None else api_key
        other.timeout = self.timeout if timeout is None else timeout
        other.retries = self.retries if retries is None else retries
        return other

    def interruptible(self: Self) -> Self:
        """Returns a client with separate connections, so that `close` interrupts only its calls."""
        other = copy.copy(self)
        other._connections = self._connections.empty()
        return other

    def close(self) -> None:
        """Closes all connections. Calls in progress fail, and so do later ones."""
        self._connections.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(
        self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None,
        headers: Optional[Mapping[str, Optional[str]]] = None, repeatable: bool = False,
    ) -> Any:
        """Calls any path and returns the parsed response. Raises ApiError.

        Calls that never reached the service and rate-limited calls are retried; others only if that is safe: all but POST, POST with an
        idempotency key, and those that the caller declares `repeatable`. With If-Match, a repetition would conflict with the lost try.
        """
        names = {name: value for name, value in (headers or {}).items() if value is not None}
        members = body if isinstance(body, Mapping) else {}
        is_keyed = "idempotency-key" in names or bool(members.get("idempotency_key")) or members.get("dry_run") is True
        repeatable = (repeatable or method != "POST" or is_keyed) and "if-match" not in names
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        if data is not None:
            names["content-type"] = "application/json"
        checked = self._headers(names)
        timeout = self.timeout + float(members.get("wait") or (query or {}).get("wait") or 0)
        tries = 0
        while True:
            try:
                return self._once(method, self._path + path + _query(query), data, checked, timeout)
            except ApiError as error:
                if method == "DELETE" and tries > 0 and error.status == 404:
                    return None  # a previous try, whose response was lost, has deleted it
                tries += 1
                pause = pause_before(tries, error)
                has_no_response = error.code in ("unreachable", "timeout")
                is_passing = error.status == 429 or has_no_response and not error.sent
                if tries > self.retries or pause > LONGEST_WAIT:
                    raise
                if not (is_passing or repeatable and (has_no_response or error.status in PASSING)):
                    raise
            time.sleep(pause)

    def _headers(self, names: Mapping[str, Optional[str]]) -> Dict[str, str]:
        """Checks the values, since `http.client` would show the key in its error."""
        headers = {"accept": "application/json", "user-agent": "pgcue-python", **names}
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key.strip()}"
        for name, value in headers.items():
            if not re.fullmatch("[\t\x20-\x7e\x80-\xff]*", str(value)):
                what = "The API key" if name == "authorization" else f"The value of the header {name}"
                raise ApiError(0, "unsendable", f"{what} contains a character that is not allowed in headers", sent=False)
        return {name: str(value) for name, value in headers.items()}

    def _once(self, method: str, target: str, data: Optional[bytes], headers: Dict[str, str], timeout: float) -> Any:
        is_sent = False
        connection = self._connections.take(timeout)
        try:
            if connection.sock is None:
                connection.connect()
            else:
                connection.sock.settimeout(timeout)
            self._connections.check()
            is_sent = True
            connection.request(method, target, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connections.give_back(connection, False)
            if isinstance(error, socket.timeout):
                raise ApiError(0, "timeout", f"{self.base_url} did not respond in time", sent=is_sent) from error
            reason = str(error) or type(error).__name__
            raise ApiError(0, "unreachable", f"{self.base_url} is unreachable: {reason}", sent=is_sent) from error
        except BaseException:
            self._connections.give_back(connection, False)
            raise
        self._connections.give_back(connection, not response.will_close)
        return self._read(response, text)

    def _read(self, response: http.client.HTTPResponse, text: bytes) -> Any:
        status = response.status
        is_ok = 200 <= status < 300
        if is_ok and not text:
            return None
        try:
            body = json.loads(text.decode())
        except (ValueError, RecursionError):
            if is_ok:
                message = f"{self.base_url} did not respond with JSON. Check the address of the service."
                raise ApiError(status, "unexpected_answer", message) from None
            body = None
        if is_ok:
            return body
        members: Dict[str, Any] = body if isinstance(body, dict) else {}
        error: Dict[str, Any] = members["error"] if isinstance(members.get("error"), dict) else {}
        about: Any = {"request_id": response.getheader("x-request-id"), "retry_after": _retry_after(response.getheader("retry-after"))}
        if not isinstance(error.get("code"), str):
            raise ApiError(status, "unexpected_answer", f"HTTP {status}, not sent by the service itself", **about)
        raise ApiError(status, error["code"], error.get("message") or error["code"], members.get("detail"), **about)


class _Connections:
    """Connections to one host, kept open between calls."""

    def __init__(self, scheme: str, host: str, port: Optional[int]) -> None:
        self._address = (scheme, host, port)
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []
        self._busy: Set[http.client.HTTPConnection] = set()
        self._closed = False
        self._pid = os.getpid()

    def empty(self) -> "_Connections":
        return _Connections(*self._address)

    def check(self) -> None:
        if self._closed:
            raise ApiError(0, "closed", "The client is closed.", sent=False)

    def take(self, timeout: float) -> http.client.HTTPConnection:
        scheme, host, port = self._address
        self.check()
        with self._lock:
            if self._pid != os.getpid():  # the parent process uses the others
                self._pid, self._idle = os.getpid(), []
            connection = None
            while self._idle and connection is None:
                connection = self._idle.pop()
                if _is_readable(connection.sock):  # closed by the service
                    connection.close()
                    connection = None
            if connection is None:
                kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
                connection = kind(host, port, timeout=timeout)
            self._busy.add(connection)
            return connection

    def give_back(self, connection: http.client.HTTPConnection, is_reusable: bool) -> None:
        with self._lock:
            self._busy.discard(connection)
            if is_reusable and not self._closed:
                return self._idle.append(connection)
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for connection in self._idle:
                connection.close()
            for connection in self._busy:
                with contextlib.suppress(OSError):
                    if connection.sock is not None:
                        # Wakes up the thread that reads; `shutdown` of an SSL socket would change its state meanwhile.
                        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    def __del__(self) -> None:
        for connection in self._idle:
            connection.close()


def _is_readable(sock: Optional[socket.socket]) -> bool:
    if sock is None:
        return True
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except ValueError:  # select takes no descriptor above 1,023
        return True


def pause_before(tries: int, error: Optional[ApiError] = None) -> float:
    """Seconds before the next try: as requested by the service, or doubled each time, with jitter so that clients don't retry at once."""
    if error is not None and error.retry_after is not None:
        return error.retry_after + random.random() / 4
    return min(0.25 * 2 ** min(tries, 10), 10.0) * (0.5 + random.random() / 2)


def _retry_after(value: Optional[str]) -> Optional[float]:
    """`Retry-After` in seconds; it may also be a date."""
    if value is None:
        return None
    if re.fullmatch("[0-9]{1,9}", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, IndexError):
        return None


def segment(value: object) -> str:
    """A parameter in a path."""
    return quote(str(value), safe="")


def _query(query: Optional[Mapping[str, Any]]) -> str:
    """A list is sent as a repeated parameter."""
    pairs = [
        (name, str(item).lower() if isinstance(item, bool) else item)
        for name, value in (query or {}).items() if value is not None
        for item in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


class Listing(Generic[Page, Item]):
    """A list of the service. Iterating over it reads page after page; `limit` is the size of a page.

    The feed of events goes on with what happens later if `wait` is given. `cursor` is then where to continue: all events before it
    have been read; `truncated` says whether events were missing.
    """

    cursor: Optional[str] = None
    truncated = False

    def __init__(self, fetch: Callable[[Mapping[str, Any]], Any], name: str, query: Mapping[str, Any]) -> None:
        self._fetch = fetch
        self._name = name
        self._query = query

    def page(self) -> Page:
        """Returns one page as the API does, with `total` and the like."""
        return self._fetch(self._query)

    def __iter__(self) -> Iterator[Item]:
        query = dict(self._query)
        while True:
            page = self._fetch(query)
            items = page[self._name]
            self.truncated = self.truncated or page.get("truncated", False)
            yield from items
            if "cursor" in page:
                self.cursor = page["cursor"]
                query["after"] = self.cursor
                if not page["has_more"] and not query.get("wait"):
                    return
            elif page.get("next_cursor"):
                query.update(cursor=page["next_cursor"], offset=None)
            elif "next_cursor" not in page and "offset" in query and items:
                query["offset"] = (query["offset"] or 0) + len(items)
                if query["offset"] >= page["total"]:
                    return
            else:
                return
