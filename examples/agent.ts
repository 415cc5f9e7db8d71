// An agent in TypeScript, with Anthropic's API: npx tsx agent.ts 'How many words are in tools.yaml?'
// It needs: npm install toolq @anthropic-ai/sdk. Its tools are those of tools.yaml, and a function.
import Anthropic from "@anthropic-ai/sdk";
import { Toolq, tool } from "toolq";

const multiply = tool({
  name: "multiply",
  description: "Multiply two numbers.",
  effect: "read",
  inputSchema: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] },
  run: ({ a, b }: { a: number; b: number }) => a * b,
});

if (!process.env.ANTHROPIC_API_KEY) {
  console.error("ANTHROPIC_API_KEY isn't set; set it to your key for the API");
  process.exit(1);
}
const client = new Anthropic();
const messages: Anthropic.MessageParam[] = [{ role: "user", content: process.argv[2] ?? "" }];
const t = new Toolq("tools.yaml", { tools: [multiply] });
try {
  const tools = await t.tools("anthropic");
  for (;;) {
    const response = await client.messages.create({ model: "claude-sonnet-5-5", max_tokens: 1024, tools, messages });
    const results = await t.answer(response);
    if (results.role === undefined) {
      // No calls, no results: this is the answer.
      console.log(response.content.map((block) => (block.type === "text" ? block.text : "")).join(""));
      break;
    }
    messages.push({ role: "assistant", content: response.content }, results);
  }
} catch (error) {
  if (!(error instanceof Anthropic.APIError)) throw error;
  // Node and the SDK each wrap the reason.
  let reason: Error = error;
  while (reason.cause instanceof Error) reason = reason.cause;
  console.error(`the request to ${client.baseURL} failed: ${reason.message || reason.name}`);
  process.exitCode = 1;
} finally {
  await t.close();
}
