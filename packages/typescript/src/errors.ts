/** Base of all errors of this package. */
export class ToolqError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** There is no toolq program to start. */
export class BinaryNotFoundError extends ToolqError {}

/** The toolq process ended before it was closed. */
export class ProcessError extends ToolqError {
  constructor(
    message: string,
    /** Its exit code; null if it didn't start, or a signal ended it. */
    readonly exitCode: number | null = null,
    /** The last lines of its stderr. */
    readonly stderr = "",
  ) {
    super(message);
  }
}

/** toolq refused to start: tools.yaml, a tool, or an argument is wrong. The message says which, and why. */
export class StartError extends ProcessError {}

/** A message can't be answered, because it isn't one that toolq reads. Nothing ran. */
export class MessageError extends ToolqError {}

/** tools.yaml can't be used as it is now. The tools that were in force still are. */
export class ReloadError extends ToolqError {}

/** This `Toolq` is closed. */
export class ClosedError extends ToolqError {
  constructor() {
    super("this Toolq is closed: make another one");
  }
}

/** Throw it in a tool: the model reads exactly this message, as an error result. */
export class ToolError extends ToolqError {}
