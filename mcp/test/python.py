"""The program as the official Python SDK sees it. usage: python.py PROGRAM TAPE"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    program, tape = sys.argv[1:]
    parameters = StdioServerParameters(command=program, args=["--tape", f"shop={tape}"])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"servers", "top", "changes", "report", "locks"} <= tools, tools
        servers = await call(session, "servers", {})
        assert servers["servers"][0]["name"] == "shop", servers
        first = servers["servers"][0]["first_tick_time"]
        last = servers["servers"][0]["last_tick_time"]
        window = {"since": first, "until": last}
        top = await call(session, "top", {**window, "dimension": "wait_event"})
        assert sum(row["pct"] for row in top["rows"]) > 99, top
        report = await call(session, "report", window)
        assert "## Waits" in report["report"], report
        result = await session.call_tool("top", {"sql": "select 1"})
        assert getattr(result, "isError", None) or getattr(result, "is_error", None), result
    print(f"python: {len(tools)} tools, {len(top['rows'])} waits")


async def call(session: ClientSession, tool: str, arguments: dict) -> dict:
    result = await session.call_tool(tool, arguments)
    text = result.content[0].text
    assert len(text) <= 25_000, len(text)
    return json.loads(text)


asyncio.run(main())
