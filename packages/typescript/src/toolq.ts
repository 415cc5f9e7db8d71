import { type Approve, LATER, decide } from "./approval.js";
import { findBinary } from "./binary.js";
import { ClosedError, MessageError, ProcessError, ReloadError, StartError, ToolqError } from "./errors.js";
import { type Event, EventStream } from "./events.js";
import { type CallLine, HostCalls } from "./host-calls.js";
import { ToolqProcess } from "./process.js";
import type { Tool } from "./tool.js";

export interface ToolqOptions {
  /** Functions that the model can call. */
  tools?: readonly Tool[];
  /** Asked about calls that need an approval. Without it, they are denied. */
  approve?: Approve;
  /** `true` if `events()` is used. */
  events?: boolean;
  /** Path of the session log; `false` for none; else a new file in toolq's state directory. */
  log?: string | false;
  /** How many calls may run at once. */
  jobs?: number;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  /** Path of the toolq program. */
  binary?: string;
  /** Further arguments of `toolq run`. */
  arguments?: readonly string[];
}

export interface AnswerOptions {
  /** Cancels the calls. The answer comes all the same, with a result for each call. */
  signal?: AbortSignal;
}

/** The forms of declarations for a model. */
export type DeclarationFormat = "anthropic" | "openai-chat" | "openai-responses" | "gemini" | "bedrock" | "mcp";

interface Line {
  type: string;
  id?: number;
  error?: { message: string; problems?: Problem[] };
  [key: string]: unknown;
}

interface Problem {
  at?: string[];
  file?: string;
  line?: number;
  message: string;
  hint?: string;
}

interface PendingRequest {
  resolve: (line: Line) => void;
  reject: (error: Error) => void;
  ErrorType: new (message: string) => ToolqError;
  isTurn: boolean;
}

/** Answers the tool calls of a model's messages. It starts a toolq process when it is first used, and ends it with `close()`. */
export class Toolq {
  readonly #toolsFile: string | undefined;
  readonly #options: ToolqOptions;
  readonly #calls: HostCalls;
  readonly #pending = new Map<number, PendingRequest>();
  readonly #streams = new Set<EventStream>();
  #process: ToolqProcess | undefined;
  #ready: Promise<unknown> | undefined;
  #started = false;
  #lastId = 0;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  /** Takes the tools of `toolsFile`, and of `options.tools`. */
  constructor(toolsFile?: string, options?: ToolqOptions);
  /** Takes the tools of `options.tools`, and of a tools.yaml in the working directory, if there is one. */
  constructor(options: ToolqOptions);
  constructor(toolsFile?: string | ToolqOptions, options: ToolqOptions = {}) {
    this.#toolsFile = typeof toolsFile === "string" ? toolsFile : undefined;
    this.#options = typeof toolsFile === "object" ? toolsFile : options;
    this.#calls = new HostCalls(this.#options.tools ?? [], (line) => {
      this.#send(line);
    });
  }

  /**
   * Answers the calls of a message: Anthropic's or OpenAI's, as an object or JSON text. Returns what goes back to the model, in the form of
   * the message; an empty array if it has no calls.
   */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- It is put into the caller's own messages, whose type it can't know.
  async answer(message: unknown, { signal }: AnswerOptions = {}): Promise<any> {
    await this.start();
    const line = await this.#request({ type: "turn", message }, MessageError, signal);
    return line["message"];
  }

  /** Returns what `answer` would run, in which batches, and why: see docs/plan.md. Nothing runs. */
  async plan(message: unknown): Promise<Record<string, unknown>> {
    await this.start();
    const line = await this.#request({ type: "plan", message }, MessageError);
    return line["plan"] as Record<string, unknown>;
  }

  /** Returns the declarations for a model. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- It is handed to the caller's SDK, whose type it can't know.
  async tools(format: DeclarationFormat = "anthropic"): Promise<any[]> {
    await this.start();
    const { tools } = await this.#request({ type: "list", format }, MessageError);
    // Bedrock's and MCP's forms are objects around the list.
    return Array.isArray(tools) ? tools : (tools as { tools: unknown[] }).tools;
  }

  /** Reads tools.yaml again. If it can't be used, the tools stay as they were. */
  async reload(): Promise<void> {
    await this.start();
    await this.#request({ type: "reload" }, ReloadError);
  }

  /** Returns what happens from now on: see docs/events.md. */
  events(): EventStream {
    if (this.#options.events !== true) throw new ToolqError("no events are asked for: pass { events: true } to Toolq");
    const stream = new EventStream();
    if (this.#closing !== undefined || this.#failure !== undefined) stream.close();
    else this.#streams.add(stream);
    return stream;
  }

  /** Starts the toolq process, if it isn't running. */
  async start(): Promise<void> {
    if (this.#closing !== undefined) throw new ClosedError();
    this.#ready ??= this.#begin();
    await this.#ready;
  }

  /** Cancels what is in flight, ends the process, and resolves when it is gone. May be called again. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** The id of the toolq process, if one runs. */
  get pid(): number | undefined {
    return this.#failure === undefined ? this.#process?.pid : undefined;
  }

  async #begin(): Promise<void> {
    const { cwd, env, events } = this.#options;
    this.#process = new ToolqProcess({
      command: this.#options.binary ?? findBinary(),
      arguments: this.#arguments(),
      cwd,
      env,
      onLine: (line) => {
        this.#handleLine(JSON.parse(line) as Line);
      },
      onEvent: events === true ? (line) => { this.#handleEvent(line); } : undefined,
      onEnd: (how, exitCode, stderr) => {
        this.#handleEnd(how, exitCode, stderr);
      },
    });
    process.once("exit", this.#closeNow);
    await this.#request({ type: "tools", tools: this.#calls.declarations() }, StartError);
    this.#started = true;
  }

  async #end(): Promise<void> {
    if (this.#process === undefined) return;
    this.#process.keepAlive(true);
    for (const [id, request] of this.#pending) if (request.isTurn) this.#send({ type: "cancel", id });
    await this.#process.close();
  }

  /** Before the program exits without `close()`. */
  readonly #closeNow = (): void => {
    this.#process?.closeNow(this.#pending.size > 0);
  };

  #arguments(): string[] {
    const { log, jobs } = this.#options;
    return [
      ...["run", "--follow", "--control", "--progress", "none", "--color", "never"],
      ...(this.#toolsFile === undefined ? [] : ["--tools", this.#toolsFile]),
      ...(log === false ? ["--no-log"] : log === undefined ? [] : ["--log", log]),
      ...(jobs === undefined ? [] : ["--jobs", String(jobs)]),
      ...(this.#options.arguments ?? []),
    ];
  }

  async #request(line: Record<string, unknown>, ErrorType: PendingRequest["ErrorType"], signal?: AbortSignal): Promise<Line> {
    if (this.#failure !== undefined) throw this.#failure;
    const id = (this.#lastId += 1);
    const cancel = (): void => {
      this.#send({ type: "cancel", id });
    };
    const text = lineText({ ...line, id });
    try {
      return await new Promise<Line>((resolve, reject) => {
        this.#pending.set(id, { resolve, reject, ErrorType, isTurn: line["type"] === "turn" });
        this.#process?.keepAlive(true);
        this.#process?.send(text);
        if (signal?.aborted === true) cancel();
        signal?.addEventListener("abort", cancel, { once: true });
      });
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  #send(line: unknown): void {
    this.#process?.send(JSON.stringify(line));
  }

  #handleLine(line: Line): void {
    const id = line.id ?? 0;
    if (line.type === "approval") void this.#ask(id, line["question"], line["call"] as Record<string, unknown>);
    else if (line.type === "call") void this.#calls.run(line as unknown as CallLine);
    else if (line.type === "cancel_call") this.#calls.cancel(line["number"] as number);
    else if (line.error !== undefined) this.#take(id, (request) => { this.#refuse(request, line.error as Problems); });
    else this.#take(id, (request) => { request.resolve(line); });
  }

  #take(id: number, settle: (request: PendingRequest) => void): void {
    const request = this.#pending.get(id);
    // Such as the refused cancellation of a turn that was answered in the meantime.
    if (request === undefined) return;
    this.#pending.delete(id);
    settle(request);
    if (this.#pending.size === 0 && this.#closing === undefined) this.#process?.keepAlive(false);
  }

  #refuse(request: PendingRequest, error: Problems): void {
    const failure = new request.ErrorType(describeError(error));
    if (failure instanceof StartError) {
      this.#failure = failure;
      // It would wait for other tools.
      this.#process?.closeNow(false);
    }
    request.reject(failure);
  }

  async #ask(id: number, question: unknown, call: Record<string, unknown>): Promise<void> {
    const decision = await decide(this.#options.approve, call);
    const word = decision === LATER ? "later" : decision.approved ? "yes" : "no";
    this.#send({ type: "approve", id, question, decision: word, reason: decision.reason });
  }

  #handleEvent(line: string): void {
    for (const stream of this.#streams) {
      if (stream.isClosed) this.#streams.delete(stream);
      else stream.push(JSON.parse(line) as Event);
    }
  }

  #handleEnd(how: string, exitCode: number | null, stderr: string): void {
    process.removeListener("exit", this.#closeNow);
    const text = stderr === "" ? "" : `:\n${stderr}`;
    if (this.#closing !== undefined) this.#failure ??= new ClosedError();
    else if (this.#started) this.#failure ??= new ProcessError(`toolq ended unexpectedly (${how})${text}`, exitCode, stderr);
    else this.#failure ??= new StartError(`toolq didn't start (${how})${text}`, exitCode, stderr);
    this.#calls.cancelAll();
    for (const stream of this.#streams) stream.close();
    for (const request of this.#pending.values()) request.reject(this.#failure);
    this.#pending.clear();
  }
}

type Problems = NonNullable<Line["error"]>;

/** A line with a message that may be JSON text already: its numbers keep their digits. */
function lineText({ message, ...line }: Record<string, unknown>): string {
  try {
    if (typeof message !== "string") return JSON.stringify({ ...line, message });
    JSON.parse(message);
    // A line break in JSON text is white space: within strings it is escaped.
    return `${JSON.stringify(line).slice(0, -1)},"message":${message.replace(/[\r\n]/g, " ")}}`;
  } catch (error) {
    throw new MessageError(`the message is not JSON: ${(error as Error).message}`);
  }
}

function describeError({ message, problems = [] }: Problems): string {
  const lines = [message];
  for (const { at, file, line, message: text, hint } of problems) {
    const place = at === undefined || at.length === 0 ? `${file ?? ""}, line ${String(line)}` : at.join("/");
    // The first one stands in the message.
    if (problems.length > 1) lines.push(`- ${place}: ${text}`);
    if (hint !== undefined) lines.push(`  hint: ${hint}`);
  }
  return lines.join("\n");
}
