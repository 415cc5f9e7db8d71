// Lists and calls the tools of sdk.tools.yaml with the TypeScript SDK: typescript_sdk_client.mjs ERA URL|COMMAND…
// Prints a line of JSON per check. The working directory is that of the server.

import { existsSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const sdk = `${process.env.MCP_KIT}/ts/node_modules/@modelcontextprotocol/client/dist`;
const { Client, StreamableHTTPClientTransport } = await import(`${sdk}/index.mjs`);
const { StdioClientTransport } = await import(`${sdk}/stdio.mjs`);

// How long a check waits for what has to happen. The machine may be busy.
const PATIENCE_MS = 60_000;

function check(name, passed, detail = "") {
  console.log(JSON.stringify({ name, passed: Boolean(passed), detail: JSON.stringify(detail) }));
}

async function waitUntil(condition) {
  const end = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within ${PATIENCE_MS} ms: ${condition}`);
    await sleep(20);
  }
}

function transport([first, ...rest]) {
  if (first.startsWith("http")) return new StreamableHTTPClientTransport(new URL(first));
  return new StdioClientTransport({ command: first, args: rest, env: process.env });
}

async function checkCalls(client) {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  check("list", names.join() === "echo,area,steps,fail,hang", names);

  let result = await client.callTool({ name: "echo", arguments: { text: "grüße, 世界" } });
  check("call", result.content[0].text === "grüße, 世界" && !result.isError, result);

  result = await client.callTool({ name: "area", arguments: { side: 12 } });
  check("structured content", result.structuredContent?.area === 144, result);

  const numbers = Array.from({ length: 20 }, (_, index) => String(index));
  const calls = numbers.map((text) => client.callTool({ name: "echo", arguments: { text } }));
  const texts = (await Promise.all(calls)).map((answer) => answer.content[0].text);
  check("20 calls at once", texts.join() === numbers.join(), texts);
}

async function checkErrors(client) {
  let result = await client.callTool({ name: "fail", arguments: {} });
  check("failed call", result.isError && result.content[0].text.includes("no such invoice"), result);

  result = await client.callTool({ name: "area", arguments: { side: "a" } });
  check("invalid input", result.isError && result.content[0].text.includes("/side"), result);

  try {
    check("unknown tool", false, await client.callTool({ name: "no_such_tool", arguments: {} }));
  } catch (error) {
    check("unknown tool", String(error).includes("no_such_tool"), String(error));
  }
}

async function checkProgress(client) {
  const told = [];
  const onprogress = ({ progress }) => told.push(progress);
  await client.callTool({ name: "steps", arguments: {} }, { onprogress });
  const increases = told.every((progress, index) => index === 0 || progress > told[index - 1]);
  // Of values that are read at once, toolq sends the last. The SDK drops that if the answer is in the same chunk.
  check("progress", told.length >= 1 && increases, told);
}

async function checkCancellation(client) {
  rmSync("pid", { force: true });
  const abort = new AbortController();
  const call = client.callTool({ name: "hang", arguments: {} }, { signal: abort.signal });
  const ended = call.then(() => "answered", () => "aborted");
  await waitUntil(() => existsSync("pid"));
  const process = `/proc/${readFileSync("pid", "utf8").trim()}`;
  check("call runs", existsSync(process));
  abort.abort("the user left");
  check("canceled call", (await ended) === "aborted");
  await waitUntil(() => !existsSync(process));
  check("canceled call's process is gone", true);
  const result = await client.callTool({ name: "echo", arguments: { text: "still there" } });
  check("call after a canceled one", result.content[0].text === "still there", result);
}

const [era, ...target] = process.argv.slice(2);
const mode = era === "legacy" || era === "auto" ? era : { pin: era };
const client = new Client({ name: "check", version: "1" }, { versionNegotiation: { mode } });
await client.connect(transport(target));
await checkCalls(client);
await checkErrors(client);
await checkProgress(client);
await checkCancellation(client);
await client.close();
check("disconnect", true);
