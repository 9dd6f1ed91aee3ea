"""Names the cause of each kept incident by calls of tacho-mcp alone, as docs/mcp.md says.

usage: agent.py --bin DIR --dir DIR [NAME]...

It has no model. It asks "servers", then "changes", and takes the first row. It asks the tool
that the row's column "next" suggests, and names the cause with the evidence of that answer. It
knows the time of the incident, as a person who is woken does, and nothing else about it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

from incident import INCIDENTS
from run import PLAYS, judged_off, moment, named

assert PLAYS

Row = dict[str, Any]

# The tool for the command that "next" has (docs/mcp.md).
TOOLS = {"markers": "markers", "blocking": "locks", "statements-history": "query", "top": "top", "sessions": "sessions", "server-history": "report"}
# Share of the causes that must be named: 24 of 30.
LEAST = 0.8
WINDOW = ("since", "until", "at")


class Client:
    """A client of the Model Context Protocol over standard input and output."""

    def __init__(self, program: str, tape: Path) -> None:
        words = [program, "--tape", f"shop={tape}"]
        self.server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.calls = 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
        self.ask("initialize", about)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message: Row) -> None:
        assert self.server.stdin
        self.server.stdin.write(json.dumps(message) + "\n")
        self.server.stdin.flush()

    def ask(self, method: str, params: Row) -> Row:
        self.calls += 1
        self.write({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params})
        assert self.server.stdout
        for line in self.server.stdout:
            answer: Row = json.loads(line)
            if answer.get("id") == self.calls:
                return answer
        raise EOFError("the server has ended")

    def tool(self, name: str, arguments: Row) -> Row:
        answer = self.ask("tools/call", {"name": name, "arguments": arguments})
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{name} {arguments}: {answer}")
        found: Row = json.loads(answer["result"]["content"][0]["text"])
        return found

    def close(self) -> None:
        assert self.server.stdin
        self.server.stdin.close()
        self.server.wait()


def suggested(command: str) -> tuple[str, Row]:
    """The tool and its arguments for a command: `tacho top application --query-id=7 --since T`."""
    words = shlex.split(command)
    tool, arguments, filters = TOOLS[words[1]], {}, {}
    rest = words[2:]
    if tool == "top" and rest and not rest[0].startswith("--"):
        arguments["dimension"] = rest.pop(0)
    options = iter(re.sub("=", "\0", word, count=1) for word in rest)
    for option in options:
        name, _, value = option.partition("\0")
        name, value = name.removeprefix("--").replace("-", "_"), value or next(options)
        if name in WINDOW or name in ("bucket", "scope") or (tool == "query" and name == "query_id"):
            arguments[name] = value
        elif tool != "report":
            filters[name] = value
    if tool == "query":
        arguments.pop("bucket", None)
    return tool, arguments | ({"filters": filters} if filters else {})


def investigate(client: Client, since: str, until: str) -> tuple[Row, str]:
    """The finding that the agent takes, and the tool that showed the evidence."""
    state = client.tool("servers", {})
    assert len(state["servers"]) == 1, state
    rows = client.tool("changes", {"since": since, "until": until})["rows"]
    first = rows[0]
    if "next" not in first:
        client.tool("report", {"since": since, "until": until})
        return first, "report"
    tool, arguments = suggested(first["next"])
    answer = client.tool(tool, arguments)
    if not any(answer.get(part) for part in ("rows", "costs", "waits", "report")):
        return first, f"{tool} (nothing)"
    return first, tool


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    right, empty = 0, 0
    played = [options.dir / "played" / f"{name}.json" for name in options.names or INCIDENTS]
    played = [file for file in played if file.exists()]
    for file in played:
        known = json.loads(file.read_text())
        one = INCIDENTS[known["incident"]]
        client = Client(f"{options.bin}/tacho-mcp", options.dir / "tapes" / one.name)
        found, tool = investigate(client, moment(known["begin"] - 3), moment(known["until"]))
        client.close()
        off = judged_off(found, known)
        is_right = bool(re.search(one.finds, named(found))) and off is not None and abs(off) <= one.within
        right += is_right
        empty += tool.endswith("(nothing)")
        print(f"{'right' if is_right else 'WRONG'}  {one.name}: {named(found)[:60]}, {client.calls} calls, evidence by {tool}")
    print(f"{len(played)} incidents: cause named {right}, answers without evidence {empty}")
    if right < len(played) * LEAST or not played:
        raise SystemExit(f"fewer than {LEAST:.0%} of the causes are named")


if __name__ == "__main__":
    main()
