// An agent: a model calls the tools in tools.yaml until it has an answer. Needs toolq on the PATH, and no packages.
//   ANTHROPIC_API_KEY=… npx tsx agent.ts 'Which files are here?'       (Node 22.18 and later: node agent.ts)
// Each message of the model is saved to conversation.json before its calls run. After a crash, the same command continues from there, and
// no write runs twice. The exit code is 6 if a call waits for an approval, and 3 if not every call could run: then, too, run it again.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const MAX_TURNS = 50;
const STATE = "conversation.json";
// The exit codes of toolq that say what is left to do.
const NO_CALLS = 5;
const TO_DO: Record<number, string> = {
  3: "not every call could run: see 'toolq log show'",
  6: "a call waits for an approval: see 'toolq approvals'",
};

type Block = { type: string; text?: string };
type Message = { role: "user" | "assistant"; content: string | Block[] };
type Conversation = { messages: Message[]; response: ModelResponse };
type ModelResponse = { id: string; role: "assistant"; content: Block[] };

if (!process.env.ANTHROPIC_API_KEY) {
  console.error("ANTHROPIC_API_KEY isn't set; set it to your key for the API");
  process.exit(1);
}
const url = `${process.env.ANTHROPIC_BASE_URL ?? "https://api.anthropic.com"}/v1/messages`;
const headers = {
  "x-api-key": process.env.ANTHROPIC_API_KEY,
  "anthropic-version": "2023-06-01",
  "content-type": "application/json",
};

/** Says why a request failed, which Node puts into the error's cause. */
function failToReach(error: Error): never {
  const cause = error.cause as { message?: string; code?: string } | undefined;
  throw new Error(`${url} can't be reached: ${cause?.message || cause?.code || error.message}`);
}

/** Sends the conversation, and returns the model's response. */
async function ask(messages: Message[], tools: unknown): Promise<ModelResponse> {
  const model = process.env.ANTHROPIC_MODEL ?? "claude-sonnet-5-5";
  const body = JSON.stringify({ model, max_tokens: 4096, tools, messages });
  // Seconds before a busy API is asked again, up to three times.
  for (let pause = 2; ; pause *= 2) {
    const response = await fetch(url, { method: "POST", headers, body }).catch(failToReach);
    if (response.ok) return (await response.json()) as ModelResponse;
    const isBusy = response.status === 429 || response.status >= 500;
    if (!isBusy || pause > 8) throw new Error(`the API answered ${response.status}: ${await response.text()}`);
    const after = response.headers.get("retry-after") ?? "";
    await sleep(1000 * (/^\d+$/.test(after) ? Number(after) : pause));
  }
}

const tools: unknown = JSON.parse(execFileSync("toolq", ["tools"], { encoding: "utf8" }));

function save(conversation: Conversation): void {
  writeFileSync(`${STATE}.new`, JSON.stringify(conversation), { flush: true });
  renameSync(`${STATE}.new`, STATE);
}

/** Returns the conversation so far, and the response whose calls come next: a new one, or one whose calls didn't all run. */
async function begin(): Promise<Conversation> {
  const task = process.argv.slice(2).join(" ");
  if (existsSync(STATE)) {
    const begun = JSON.parse(readFileSync(STATE, "utf8")) as Conversation;
    if (!task || task === begun.messages[0].content) return begun;
    throw new Error(`${STATE} holds an interrupted conversation about another task: run this without one to continue it, or remove the file`);
  }
  if (!task) throw new Error(`usage: ${process.argv[1]} TASK`);
  const messages: Message[] = [{ role: "user", content: task }];
  return { messages, response: await ask(messages, tools) };
}

/** Runs the calls of a response. Returns the message with their results, or nothing if there are no calls. */
function answer(response: ModelResponse): Message | undefined {
  // With its id, which tells it from one of another day that asks for the same.
  const input = JSON.stringify(response);
  const toolq = spawnSync("toolq", ["run", "-q"], { input, encoding: "utf8", stdio: ["pipe", "pipe", "inherit"], maxBuffer: Infinity });
  if (toolq.error && toolq.status === null) throw toolq.error;
  const code = toolq.status ?? 128 + constants.signals[toolq.signal!];
  if (code === NO_CALLS) return undefined;
  if (code in TO_DO) console.error(`${TO_DO[code]}, then run ${process.argv[1]} again`);
  if (code !== 0) process.exit(code);
  return JSON.parse(toolq.stdout) as Message;
}

async function main(): Promise<void> {
  const begun = await begin();
  const messages = begun.messages;
  let response = begun.response;
  for (let turn = 1; ; turn++) {
    if (turn > MAX_TURNS) throw new Error(`there is no answer after ${MAX_TURNS} turns`);
    save({ messages, response });
    const results = answer(response);
    if (!results) break;
    messages.push({ role: "assistant", content: response.content }, results);
    response = await ask(messages, tools);
  }
  rmSync(STATE);
  console.log(response.content.map((block) => block.text ?? "").join("\n"));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
