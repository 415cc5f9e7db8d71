import { declare, renderError, renderResult, type Tool } from "./tool.js";

/** A `call` line. */
export interface CallLine {
  id: number;
  number: number;
  call: {
    tool_use_id: string;
    tool_name: string;
    input: unknown;
    attempt: number;
    idempotency_key: string;
  };
}

/** Serves the calls of tools that are functions. */
export class HostCalls {
  readonly #tools = new Map<string, Tool>();
  /** By their numbers, which no two calls or attempts share. */
  readonly #running = new Map<number, AbortController>();
  readonly #send: (line: unknown) => void;

  constructor(tools: readonly Tool[], send: (line: unknown) => void) {
    this.#send = send;
    for (const tool of tools) {
      if (this.#tools.has(tool.name)) throw new TypeError(`two tools are called ${tool.name}: give one of them another name`);
      this.#tools.set(tool.name, tool);
    }
  }

  declarations(): Record<string, unknown> {
    return Object.fromEntries([...this.#tools].map(([name, tool]) => [name, declare(tool)]));
  }

  /** Runs a call, and sends its result. */
  async run({ id, number, call }: CallLine): Promise<void> {
    const controller = new AbortController();
    this.#running.set(number, controller);
    let content: unknown;
    let isError = false;
    try {
      const tool = this.#tools.get(call.tool_name);
      if (tool === undefined) throw new Error(`this program serves no tool ${call.tool_name}`);
      const context = {
        toolUseId: call.tool_use_id,
        attempt: call.attempt,
        idempotencyKey: call.idempotency_key,
        signal: controller.signal,
      };
      content = renderResult(await tool.run(call.input as never, context));
    } catch (error) {
      [content, isError] = [renderError(error), true];
    }
    if (!this.#running.delete(number)) return; // Nobody waits for it any more.
    this.#send({ type: "result", id, number, tool_use_id: call.tool_use_id, content, is_error: isError });
  }

  /** Tells a function that nobody waits for its result any more. */
  cancel(number: number): void {
    const controller = this.#running.get(number);
    this.#running.delete(number);
    controller?.abort();
  }

  cancelAll(): void {
    for (const number of [...this.#running.keys()]) this.cancel(number);
  }
}
