"""What a developer would write in Python: asyncio subprocesses, eight at a time, with a compiled schema for inputs."""

import asyncio
import json
import sys

import fastjsonschema

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "pattern": r"^notes/[a-z]+-[0-9]+\.md$"},
        "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2},
        "mode": {"enum": ["text", "outline"]},
        "question": {"type": "string", "maxLength": 2000},
    },
    "required": ["path", "mode"],
    "additionalProperties": False,
}


async def run(call, validate, slots):
    validate(call["input"])
    async with slots:
        process = await asyncio.create_subprocess_exec(
            "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        stdout, _ = await process.communicate(json.dumps(call["input"]).encode())
    return {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": stdout.decode(),
        "is_error": process.returncode != 0,
    }


async def main(path):
    with open(path, "rb") as file:
        calls = [block for block in json.load(file)["content"] if block["type"] == "tool_use"]
    validate = fastjsonschema.compile(SCHEMA)
    slots = asyncio.Semaphore(8)
    results = await asyncio.gather(*(run(call, validate, slots) for call in calls))
    json.dump({"role": "user", "content": results}, sys.stdout)


asyncio.run(main(sys.argv[1]))
