// The API of the agent in the pictures: three searches, a page, and an answer. Prints its address.
import { createServer } from "node:http";

const call = (id, name, input) => ({ type: "tool_use", id, name, input });
const turns = [
  ["wages", "rents", "taxes"].map((query, n) => call(`toolu_1${n}`, "search", { query })),
  [call("toolu_20", "fetch", { page: "rents" })],
  [{ type: "text", text: "Rents rose by 4 percent." }],
];
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => { body += part; });
  request.on("end", () => setTimeout(() => {
    const turn = JSON.parse(body).messages.filter((message) => message.role === "assistant").length;
    const usage = { input_tokens: 100, output_tokens: 20 };
    const stop_reason = turn < 2 ? "tool_use" : "end_turn";
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: `msg_${turn}`, type: "message", role: "assistant", model: "example", content: turns[turn], stop_reason, usage }));
  }, 150));
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
