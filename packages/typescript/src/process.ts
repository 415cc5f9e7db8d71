import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { readLines } from "./line-reader.js";

/** How many milliseconds toolq may take to end all calls and then itself, after its stdin was closed, and after SIGTERM. */
const CLOSE_GRACE = 15_000;
const TERMINATE_GRACE = 5_000;
const STDERR_LINES = 50;

export interface ProcessOptions {
  command: string;
  arguments: readonly string[];
  cwd: string | undefined;
  env: NodeJS.ProcessEnv | undefined;
  onLine: (line: string) => void;
  onEvent: ((line: string) => void) | undefined;
  /** Called once, when the process has ended and all its lines were passed on. */
  onEnd: (how: string, exitCode: number | null, stderr: string) => void;
}

/** A running `toolq run --follow --control`, and its pipes. */
export class ToolqProcess {
  readonly #child: ChildProcess;
  readonly #stdin: Writable;
  readonly #stderr: string[] = [];
  readonly #ended: Promise<void>;

  constructor(options: ProcessOptions) {
    const events = options.onEvent === undefined ? [] : ["--events", "fd:3"];
    // A session of its own, so that Ctrl-C ends a call by way of this program, not toolq itself.
    this.#child = spawn(options.command, [...options.arguments, ...events], {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: options.onEvent === undefined ? ["pipe", "pipe", "pipe"] : ["pipe", "pipe", "pipe", "pipe"],
    });
    const child = this.#child;
    this.#stdin = child.stdin as Writable;
    // Its end is reported by `close`, with what it said last.
    this.#stdin.on("error", () => undefined);
    readLines(child.stdout as Readable, options.onLine);
    readLines(child.stderr as Readable, (line) => {
      this.#noteStderr(line);
    });
    if (options.onEvent !== undefined) readLines(child.stdio[3] as Readable, options.onEvent);
    this.#ended = new Promise((resolve) => {
      let failure: Error | undefined;
      child.on("error", (error) => {
        failure = error;
        if (child.pid === undefined) finish(null, null);
      });
      const finish = (code: number | null, signal: NodeJS.Signals | null): void => {
        const how = failure?.message ?? (signal === null ? `exit code ${String(code)}` : `signal ${signal}`);
        options.onEnd(how, code, this.#stderr.join("\n"));
        resolve();
      };
      child.on("close", finish);
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  send(line: string): void {
    if (this.#stdin.writable) this.#stdin.write(line + "\n");
  }

  /** Lets the event loop end while nothing is in flight, or keeps it alive. Once it ends, toolq's stdin closes, and toolq ends. */
  keepAlive(isNeeded: boolean): void {
    const streams = [this.#child, ...this.#child.stdio] as { ref?: () => void; unref?: () => void }[];
    for (const stream of streams) {
      if (isNeeded) stream.ref?.();
      else stream.unref?.();
    }
  }

  /** Closes stdin. toolq then answers what is in flight, and ends. */
  async close(): Promise<void> {
    this.#stdin.end();
    if (await this.#endsWithin(CLOSE_GRACE)) return;
    this.#child.kill("SIGTERM");
    if (await this.#endsWithin(TERMINATE_GRACE)) return;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Ends it where nothing can be waited for. With `isBusy`, its calls are ended, too. */
  closeNow(isBusy: boolean): void {
    this.#stdin.destroy();
    if (isBusy) this.#child.kill("SIGTERM");
  }

  async #endsWithin(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, milliseconds, false);
    });
    try {
      return await Promise.race([this.#ended.then(() => true), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #noteStderr(line: string): void {
    this.#stderr.push(line);
    if (this.#stderr.length > STDERR_LINES) this.#stderr.shift();
    if (line.startsWith("warning")) process.emitWarning(line, "ToolqWarning");
  }
}
