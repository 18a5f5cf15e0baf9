"""Writes the tasks of a playbook as lines of JSON to the descriptor that the caller handed in."""

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: bragg_tasks
type: aggregate
short_description: tasks as lines of JSON
description: Writes the begin and end of every task to descriptor 3.
"""

DESCRIPTOR = 3
TEXT_MAX = 2000


def explain(result):
    """The reason of a failure: the message, what the program wrote, and that of the first failed item of a loop."""
    for item in result.get("results") or []:
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            return explain({key: value for key, value in item.items() if key != "results"})
    parts = [str(result.get("msg") or "")]
    for key in ("stderr", "module_stderr", "exception"):
        text = str(result.get(key) or "").strip()
        if text:
            parts.append(text[-TEXT_MAX:])
            break
    else:
        if result.get("rc"):
            parts.append(str(result.get("stdout") or "").strip()[-TEXT_MAX:])
    return ": ".join(part.strip() for part in parts if part.strip())


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bragg_tasks"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        os.set_inheritable(DESCRIPTOR, False)
        self._began = {}
        self._play = None

    def _write(self, **event):
        line = json.dumps(event, default=str).encode() + b"\n"
        while line:
            line = line[os.write(DESCRIPTOR, line):]

    def v2_playbook_on_start(self, playbook):
        self._write(event="start")

    def v2_playbook_on_play_start(self, play):
        self._play = play

    def v2_playbook_on_no_hosts_matched(self):
        self._write(event="unmatched", task=self._play.get_name()[:TEXT_MAX] if self._play else "")

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._write(event="task", task=task.get_name()[:TEXT_MAX])

    v2_playbook_on_handler_task_start = lambda self, task: self.v2_playbook_on_task_start(task, False)
    v2_playbook_on_cleanup_task_start = lambda self, task: self.v2_playbook_on_task_start(task, False)

    def v2_runner_on_start(self, host, task):
        self._began[host.get_name(), task._uuid] = time.monotonic()

    def _end(self, event, result, ignored=False):
        host, task = result._host.get_name(), result._task
        began = self._began.pop((host, task._uuid), None)
        values = result._result
        self._write(
            event=event, host=host, task=task.get_name()[:TEXT_MAX], ignored=bool(ignored), changed=bool(values.get("changed")),
            facts=task.action == "gather_facts" and task.name == "Gathering Facts",
            seconds=None if began is None else time.monotonic() - began,
            message="" if event in ("ok", "skipped") else explain(values)[:TEXT_MAX])

    def v2_runner_on_ok(self, result):
        self._end("ok", result)

    def v2_runner_on_skipped(self, result):
        self._end("skipped", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._end("failed", result, ignore_errors)

    def v2_runner_on_unreachable(self, result):
        self._end("unreachable", result, getattr(result._task, "ignore_unreachable", False))

    def v2_playbook_on_stats(self, stats):
        for host in stats.processed:
            self._write(event="stats", host=host, failures=stats.failures.get(host, 0) + stats.dark.get(host, 0))
