// What a developer would write in Node: child processes, eight at a time, with inputs validated by ajv.

const { spawn } = require("node:child_process");
const { readFileSync } = require("node:fs");
const Ajv = require("ajv");

const schema = {
  type: "object",
  properties: {
    path: { type: "string", minLength: 1, pattern: "^notes/[a-z]+-[0-9]+\\.md$" },
    lines: { type: "array", items: { type: "integer", minimum: 1 }, minItems: 2, maxItems: 2 },
    mode: { enum: ["text", "outline"] },
    question: { type: "string", maxLength: 2000 },
  },
  required: ["path", "mode"],
  additionalProperties: false,
};

function run(call) {
  return new Promise((resolve, reject) => {
    const child = spawn("cat");
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.on("error", reject);
    child.on("close", (code) =>
      resolve({
        type: "tool_result",
        tool_use_id: call.id,
        content: Buffer.concat(chunks).toString(),
        is_error: code !== 0,
      }),
    );
    child.stdin.end(JSON.stringify(call.input));
  });
}

async function main(path) {
  const calls = JSON.parse(readFileSync(path, "utf8")).content.filter((block) => block.type === "tool_use");
  const validate = new Ajv().compile(schema);
  const results = new Array(calls.length);
  let next = 0;
  const worker = async () => {
    while (next < calls.length) {
      const index = next++;
      if (!validate(calls[index].input)) throw new Error(JSON.stringify(validate.errors));
      results[index] = await run(calls[index]);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  process.stdout.write(JSON.stringify({ role: "user", content: results }));
}

main(process.argv[2]);
