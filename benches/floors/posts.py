"""What a developer would write in Python: aiohttp, 64 requests at a time. Nothing is validated."""

import asyncio
import sys

import aiohttp


async def post(session, url, line, slots):
    async with slots, session.post(url, data=line, headers={"content-type": "application/json"}) as response:
        response.raise_for_status()
        return await response.text()


async def main(address, path):
    with open(path, "rb") as file:
        lines = file.read().splitlines()
    slots = asyncio.Semaphore(64)
    connector = aiohttp.TCPConnector(limit=64)
    async with aiohttp.ClientSession(connector=connector) as session:
        url = f"http://{address}/notes"
        responses = await asyncio.gather(*(post(session, url, line, slots) for line in lines))
    sys.stdout.write("\n".join(responses))


asyncio.run(main(*sys.argv[1:]))
