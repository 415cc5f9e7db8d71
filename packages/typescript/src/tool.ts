import { ToolError } from "./errors.js";

/** JSON Schema of an input. */
export type Schema = Record<string, unknown>;

/** Content blocks, such as `{ type: "image", … }`, as a tool's answer instead of a text. */
export class Blocks {
  constructor(readonly blocks: readonly Record<string, unknown>[]) {}
}

/** What a function knows about its call. */
export interface CallContext {
  toolUseId: string;
  /** From 1: retries have higher ones. */
  attempt: number;
  /** The same for all attempts at a call. */
  idempotencyKey: string;
  /** Aborted when the call times out or is canceled: nobody waits for its result then. */
  signal: AbortSignal;
}

/** A function that a model can call. */
export interface Tool {
  name: string;
  description?: string;
  /** What an input looks like. toolq checks each input before it calls. */
  inputSchema: Schema;
  /** `write` by default. */
  effect?: "read" | "idempotent" | "write";
  /** Milliseconds, or a text such as "5s". */
  timeout?: number | string;
  approve?: boolean | Schema;
  paths?: readonly unknown[];
  /** Further keys of tools.yaml, such as `locks`. */
  keys?: Record<string, unknown>;
  run(input: never, context: CallContext): unknown;
}

/** Returns its argument: a tool, with `Input` as the type of what `run` receives. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- It is inferred from `run`.
export function tool<Input>(declaration: Omit<Tool, "run"> & { run(input: Input, context: CallContext): unknown }): Tool {
  return declaration;
}

/** The tool as in tools.yaml. */
export function declare(tool: Tool): Record<string, unknown> {
  const timeout = typeof tool.timeout === "number" ? `${String(Math.max(1, Math.round(tool.timeout)))}ms` : tool.timeout;
  return {
    ...tool.keys,
    description: tool.description,
    input_schema: tool.inputSchema,
    effect: tool.effect,
    timeout,
    approve: tool.approve,
    paths: tool.paths,
    backing: "host",
  };
}

/** What the model reads: a text as it is, nothing as an empty text, anything else as JSON. */
export function renderResult(value: unknown): unknown {
  if (value instanceof Blocks) return value.blocks;
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return value;
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) throw new TypeError(`the tool returned a ${typeof value}, which is not JSON: return a text or an object`);
  return text;
}

/** What the model reads about an error: its name and message, and nothing of the stack. */
export function renderError(error: unknown): string {
  if (error instanceof ToolError) return error.message === "" ? "failed" : error.message;
  if (error instanceof Error) return error.message === "" ? error.name : `${error.name}: ${error.message}`;
  return String(error);
}
