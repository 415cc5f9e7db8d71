// Tests of the built package: `npm run build` first. TOOLQ_BINARY names the toolq that is tested.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  BinaryNotFoundError,
  Blocks,
  ClosedError,
  findBinary,
  LATER,
  MessageError,
  ProcessError,
  ReloadError,
  StartError,
  tool,
  ToolError,
  Toolq,
} from "../dist/index.js";

const TOOLS = `
version: 1
tools:
  look: {input_schema: {type: object}, effect: read, command: [echo, seen]}
  nap:
    input_schema: {type: object, properties: {seconds: {type: string}}, required: [seconds]}
    effect: read
    command: [sleep, "{seconds}"]
  pay:
    approve: true
    input_schema: {type: object, properties: {amount: {type: integer}}, required: [amount]}
    command: [echo, "paid {amount}"]
`;

const directory = mkdtempSync(join(tmpdir(), "toolq-"));
const toolsFile = join(directory, "tools.yaml");
writeFileSync(toolsFile, TOOLS);
after(() => rmSync(directory, { recursive: true }));

const call = (name, input = {}, id = "toolu_1") => ({ type: "tool_use", id, name, input });
const message = (...calls) => ({ role: "assistant", content: calls });
const results = (answer) => answer.content.map((block) => [block.is_error, block.content]);
const SEEN = [[false, "seen"]];

function isAlive(pid) {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

async function waitFor(condition) {
  const deadline = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, "it never came true");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function using(options, body) {
  const t = new Toolq(toolsFile, { log: false, ...options });
  try {
    await body(t);
  } finally {
    await t.close();
  }
}

test("each form is answered in its own", () =>
  using({}, async (t) => {
    assert.deepEqual(await t.answer(message(call("look"))), {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "seen", is_error: false }],
    });
    const chat = { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }] };
    assert.deepEqual(await t.answer(chat), [{ role: "tool", tool_call_id: "c", content: "seen" }]);
    assert.deepEqual(await t.answer({ role: "assistant", content: "Nothing." }), []);
    assert.deepEqual(results(await t.answer(JSON.stringify(message(call("look")), null, 2))), SEEN);
  }));

test("what is no message is an error, and the process lives on", () =>
  using({}, async (t) => {
    for (const wrong of [{ a: 1 }, "{", '{}, "type": "approve"', 5, { big: 1n }]) {
      await assert.rejects(t.answer(wrong), MessageError);
    }
    assert.deepEqual(results(await t.answer(message(call("look")))), SEEN);
  }));

test("many turns are in flight, and long texts survive", async () => {
  const echo = tool({ name: "echo", effect: "read", inputSchema: { type: "object" }, run: ({ text }) => String(text.length) + text.slice(0, 9) });
  await using({ tools: [echo] }, async (t) => {
    const text = "a\n\u2028\0😀" + "x".repeat(2_000_000);
    const answers = await Promise.all([0, 1, 2, 3].map((at) => t.answer(message(call("echo", { text }, `toolu_${at}`)))));
    assert.deepEqual(answers.map((answer) => answer.content[0].tool_use_id), ["toolu_0", "toolu_1", "toolu_2", "toolu_3"]);
    assert.deepEqual(results(answers[3]), [[false, String(text.length) + text.slice(0, 9)]]);
  });
});

test("a signal cancels a turn, which is answered all the same", () =>
  using({ events: true }, async (t) => {
    const abort = new AbortController();
    const events = t.events();
    const answer = t.answer(message(call("nap", { seconds: "1000" })), { signal: abort.signal });
    for await (const event of events) if (event.type === "tool_started") break;
    abort.abort();
    assert.equal(results(await answer)[0][0], true);
    const aborted = await t.answer(message(call("nap", { seconds: "1000" })), { signal: AbortSignal.abort() });
    assert.equal(results(aborted)[0][0], true);
  }));

test("plan, tools and reload", () =>
  using({}, async (t) => {
    const plan = await t.plan(message(call("look"), call("pay", { amount: 1 }, "toolu_2")));
    assert.deepEqual(plan.batches.map((batch) => batch.calls[0].tool_name), ["look", "pay"]);
    assert.deepEqual((await t.tools()).map((tool) => tool.name), ["look", "nap", "pay"]);
    assert.equal((await t.tools("openai-chat"))[0].function.name, "look");
    assert.equal((await t.tools("mcp"))[0].name, "look");
    await assert.rejects(t.tools("cobol"));
    try {
      writeFileSync(toolsFile, TOOLS.replace("look:", "watch:"));
      await t.reload();
      writeFileSync(toolsFile, "tools: [");
      await assert.rejects(t.reload(), ReloadError);
      assert.deepEqual(results(await t.answer(message(call("watch")))), SEEN);
    } finally {
      writeFileSync(toolsFile, TOOLS);
    }
  }));

test("functions are tools", async () => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, additionalProperties: false };
  const aborted = [];
  const of = (name, run, more = {}) => tool({ name, effect: "read", inputSchema: schema, run, ...more });
  const tools = [
    of("double", ({ n }) => 2 * n),
    of("later", async ({ n }) => ({ n })),
    of("nothing", () => undefined),
    of("fails", () => { throw new RangeError("no such city"); }),
    of("refuses", () => { throw new ToolError("Ask for a city in Europe."); }),
    of("no_json", () => 1n),
    of("blocks", () => new Blocks([{ type: "text", text: "a" }])),
    of("hangs", (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => { aborted.push(1); reject(signal.reason); })), { timeout: 200 }),
    of("writes", () => new Promise(() => {}), { timeout: 200, effect: "write" }),
  ];
  await using({ tools }, async (t) => {
    const names = ["double", "later", "nothing", "fails", "refuses", "no_json"];
    const answer = await t.answer(message(...names.map((name) => call(name, { n: 4 }, name)), call("double", { m: 1 }, "m")));
    const [double, later, nothing, fails, refuses, noJson, invalid] = results(answer);
    assert.deepEqual([double, later, nothing[0]], [[false, "8"], [false, '{"n":4}'], false]);
    assert.ok(fails[0] && fails[1].includes("RangeError: no such city") && !fails[1].includes("at "));
    assert.ok(refuses[0] && refuses[1].includes("Ask for a city") && !refuses[1].includes("ToolError"));
    assert.ok(noJson[0] && noJson[1].includes("BigInt"));
    assert.ok(invalid[0] && invalid[1].includes("/m"));
    assert.deepEqual((await t.answer(message(call("blocks")))).content[0].content, [{ type: "text", text: "a" }]);
    const [hangs, writes] = results(await t.answer(message(call("hangs"), call("writes", {}, "toolu_2"))));
    assert.ok(hangs[0] && hangs[1].includes("timed out") && writes[1].includes("In doubt"));
    await waitFor(() => aborted.length === 1);
  });
  assert.throws(() => new Toolq(toolsFile, { tools: [tools[0], tools[0]] }), /two tools are called double/);
});

test("functions need no tools.yaml", async () => {
  const one = tool({ name: "one", effect: "read", inputSchema: { type: "object" }, run: () => 1 });
  const options = { tools: [one], log: false, cwd: mkdtempSync(join(directory, "empty-")) };
  for (const t of [new Toolq(options), new Toolq(undefined, options)]) {
    assert.deepEqual(results(await t.answer(message(call("one")))), [[false, "1"]]);
    await t.close();
  }
});

test("approve decides, and whatever is no clear yes is a no", async () => {
  const asked = [];
  const approve = async (request) => {
    asked.push(request);
    return { approved: request.input.amount < 10, reason: "too much" };
  };
  await using({ approve }, async (t) => {
    const answer = results(await t.answer(message(call("pay", { amount: 5 }), call("pay", { amount: 50 }, "toolu_2"))));
    assert.deepEqual(answer[0], [false, "paid 5"]);
    assert.ok(answer[1][0] && answer[1][1].includes("too much"));
  });
  assert.deepEqual(asked[0].runs, { command: ["echo", "paid 5"] });
  const noYes = [undefined, () => false, () => 1, () => null, () => { throw new Error("hunter2"); }];
  for (const approve of noYes) {
    await using(approve ? { approve } : {}, async (t) => {
      const [[isError, text]] = results(await t.answer(message(call("pay", { amount: 5 }))));
      assert.ok(isError && text.includes("Denied") && !text.includes("hunter2"));
    });
  }
});

test("a call can wait for a later approval", () =>
  using({ approve: () => LATER }, async (t) => {
    const [[isError, text]] = results(await t.answer(message(call("pay", { amount: 5 }))));
    assert.ok(isError && text.includes("needs an approval"), text);
  }));

test("events are told to all readers", () =>
  using({ events: true }, async (t) => {
    const [first, second] = [t.events(), t.events()];
    await t.answer(message(call("look")));
    await t.close();
    const kinds = [];
    for await (const event of first) kinds.push(event.type);
    assert.ok(kinds.includes("tool_completed") && kinds.at(-1) === "queue_drained");
    let count = 0;
    for await (const _ of second) count += 1;
    assert.equal(count, kinds.length);
  }));

test("close cancels what is in flight, and leaves nothing", async () => {
  const t = new Toolq(toolsFile, { log: false });
  await t.start();
  const { pid } = t;
  const pending = t.answer(message(call("nap", { seconds: "1000" })));
  await new Promise((resolve) => setTimeout(resolve, 50));
  await t.close();
  assert.ok(!isAlive(pid));
  assert.equal(results(await pending)[0][0], true);
  await assert.rejects(t.answer(message(call("look"))), ClosedError);
  await new Toolq(toolsFile).close();
});

test("an unexpected end and a bad start say what toolq said last", async () => {
  const t = new Toolq(toolsFile, { log: false });
  await t.start();
  const pending = t.answer(message(call("nap", { seconds: "1000" })));
  process.kill(t.pid, "SIGKILL");
  await assert.rejects(pending, (error) => error instanceof ProcessError && /ended unexpectedly \(signal SIGKILL\)/.test(error.message));
  await assert.rejects(t.answer(message(call("look"))), ProcessError);
  await t.close();
  await assert.rejects(new Toolq("missing.yaml").start(), (error) => error instanceof StartError && /missing\.yaml/.test(error.message));
  await assert.rejects(new Toolq(toolsFile, { binary: "/nowhere/toolq" }).start(), StartError);
  await assert.rejects(new Toolq(toolsFile, { binary: "/bin/false" }).start(), StartError);
  const clash = tool({ name: "look", inputSchema: { type: "object" }, run: () => 1 });
  await assert.rejects(new Toolq(toolsFile, { log: false, tools: [clash] }).start(), (error) => error instanceof StartError && /look/.test(error.message));
});

test("a missing binary says what to do", () => {
  const { TOOLQ_BINARY, PATH } = process.env;
  try {
    process.env.TOOLQ_BINARY = "/nowhere/toolq";
    assert.throws(findBinary, (error) => error instanceof BinaryNotFoundError && /TOOLQ_BINARY/.test(error.message));
    delete process.env.TOOLQ_BINARY;
    process.env.PATH = "/nowhere";
    assert.throws(findBinary, /pass \{ binary \}/);
  } finally {
    Object.assign(process.env, { TOOLQ_BINARY, PATH });
  }
});

const PROGRAM = `
import { Toolq, tool } from ${JSON.stringify(fileURLToPath(new URL("../dist/index.js", import.meta.url)))};
const t = new Toolq(process.argv[1], { log: false });
await t.start();
console.log(t.pid);
const look = { type: "tool_use", id: "a", name: process.argv[2], input: process.argv[2] === "nap" ? { seconds: "1000" } : {} };
const answer = t.answer({ role: "assistant", content: [look] });
`;

async function runProgram(rest, name) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM + rest, toolsFile, name], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return { child, pid: Number((await lines.next()).value), ended: once(child, "exit") };
}

test("a program that ends without close leaves nothing", async () => {
  for (const [rest, name, code] of [["await answer;", "look", 0], ["process.exit(4);", "nap", 4], ["throw new Error('of the program')", "nap", 1]]) {
    const { pid, ended } = await runProgram(name === "nap" && code === 1 ? "process.on('uncaughtException', () => process.exit(1));" + rest : rest, name);
    assert.equal((await ended)[0], code);
    await waitFor(() => !isAlive(pid));
  }
});

test("a killed program leaves nothing that is longer than its calls", async () => {
  const { child, pid, ended } = await runProgram("await answer; setInterval(() => {}, 1000); console.log('answered');", "look");
  child.kill("SIGKILL");
  await ended;
  await waitFor(() => !isAlive(pid));
});
