"""Handlers: functions that run an execution, in a worker or behind a webhook."""
from __future__ import annotations

import asyncio
import inspect
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, Union

MOST_CHARACTERS = 2000
"""Maximum length of `error`."""
MOST_SHOWN = 100
"""Characters shown of what is not an outcome."""


@dataclass(frozen=True)
class Execution:
    """An execution to run. It may be delivered twice: deduplicate effects by `execution_id`."""

    execution_id: str
    cue_id: str
    task: Optional[str]
    payload: Any
    attempt: int
    scheduled_for: str
    """ISO 8601 in UTC."""
    token: str = field(repr=False)
    """An API key for this execution only."""
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when the result no longer counts: another worker may have the execution, or the time is over. Stop working."""


Outcome = Mapping[str, Any]
"""Whether it has succeeded, and evidence: `{"success": True, "external_id": "42"}`."""
Handler = Callable[[Execution], Union[Outcome, Awaitable[Outcome]]]
Handlers = Mapping[str, Handler]
"""By task; `*` handles any other task."""


def handler_of(handlers: Handlers, task: Optional[str]) -> Optional[Handler]:
    return handlers.get(task or "*") or handlers.get("*")


def run(handler: Handler, execution: Execution) -> Dict[str, Any]:
    """Runs a handler and returns its outcome: a failure if it raises, or returns anything that is not an outcome."""
    try:
        value = handler(execution)
        return outcome_of(asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value)
    except (Exception, SystemExit) as error:
        return failure_of(error)


async def run_async(handler: Handler, execution: Execution) -> Dict[str, Any]:
    """Runs a handler in the event loop if it is an async function, otherwise in a thread."""
    try:
        if inspect.iscoroutinefunction(handler):
            return outcome_of(await handler(execution))
    except (Exception, SystemExit) as error:
        return failure_of(error)
    return await asyncio.get_running_loop().run_in_executor(None, run, handler, execution)


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def outcome_of(value: Any) -> Dict[str, Any]:
    """The outcome of what a handler returned: a failure with the reason if that is anything else."""
    if not isinstance(value, Mapping) or not isinstance(value.get("success"), bool):
        text = repr(value)
        shown = f"{text[:MOST_SHOWN]}…" if len(text) > MOST_SHOWN else text
        return failure(f"the handler returned {shown} instead of an outcome, such as {{\"success\": True}}")
    try:
        return json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return failure(f"the handler returned an outcome that is not JSON: {error}")


def failure_of(error: BaseException) -> Dict[str, Any]:
    return failure(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def failure(reason: str) -> Dict[str, Any]:
    """Without what the service rejects: NUL and lone surrogates."""
    text = reason[:MOST_CHARACTERS].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    return {"success": False, "error": text}
