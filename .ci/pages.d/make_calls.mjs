// Writes the tools and calls of two runs.
import { writeFileSync } from "node:fs";

const hostile = "</script><img src=x onerror=\"globalThis.broken=1\"><script>globalThis.broken=1</script>\u202eevil\u001b[2J";
const call = (id, name, input) => ({ type: "tool_use", id, name, input });
const write = (file, calls) => writeFileSync(file, JSON.stringify({ role: "assistant", content: calls }));

writeFileSync("hostile.txt", hostile);
writeFileSync("few.yaml", `version: 1
tools:
  show: {input_schema: {type: object}, effect: read, command: [cat, hostile.txt]}
  fail: {input_schema: {type: object}, effect: read, command: [sh, -c, "cat hostile.txt >&2; exit 3"]}
  flaky:
    input_schema: {type: object}
    effect: read
    retry: {times: 1, on: ["exit:75"], backoff: 10ms}
    command: [sh, -c, "if [ -e tried ]; then exit 0; fi; touch tried; exit 75"]
`);
write("few.json", [
  call("toolu_1", "show", { [hostile]: hostile }),
  call("toolu_2", "fail", {}),
  call("toolu_3", "flaky", {}),
  call(hostile, hostile, {}),
]);

const result = (id, content) => ({ type: "tool_result", tool_use_id: id, content });
writeFileSync("few.rec", [
  { role: "assistant", content: [call("toolu_1", "show", {}), call("toolu_3", "flaky", {}), call("toolu_4", "gone", {})] },
  { role: "user", content: [result("toolu_1", "poem"), result("toolu_3", "(no output)"), result("toolu_4", hostile)] },
].map((line) => JSON.stringify(line)).join("\n"));

writeFileSync("many.yaml", `version: 1
tools:
  read: {input_schema: {type: object}, effect: read, command: ["true"]}
  fail: {input_schema: {type: object}, effect: read, command: ["false"]}
`);
// The same calls, each in a batch of its own.
writeFileSync("steps.yaml", `version: 1
tools:
  read: {input_schema: {type: object}, command: ["true"]}
  fail: {input_schema: {type: object}, command: ["false"]}
`);
writeFileSync("follow.yaml", `version: 1
tools:
  first: {input_schema: {type: object}, command: ["true"]}
  second: {input_schema: {type: object}, command: [sh, -c, "until [ -e seen ]; do sleep 0.1; done"]}
`);
write("follow.json", [call("toolu_1", "first", {}), call("toolu_2", "second", {})]);
const words = "so much depends upon a red wheel barrow glazed with rain water ".repeat(3);
write("many.json", Array.from({ length: 10_000 }, (_, n) => call(`toolu_${n}`, n % 10 ? "read" : "fail", { n, words })));
