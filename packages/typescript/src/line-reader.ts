import { StringDecoder } from "node:string_decoder";
import type { Readable } from "node:stream";

/** Passes each line of a stream on. A long line is joined once, not once a chunk. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let parts: string[] = [];
  const push = (text: string): void => {
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      const whole = parts.join("") + line;
      parts = [];
      if (whole !== "") onLine(whole);
    }
    if (rest !== "") parts.push(rest);
  };
  stream.on("data", (chunk: Buffer) => {
    push(decoder.write(chunk));
  });
  stream.on("end", () => {
    push(decoder.end() + "\n");
  });
}
