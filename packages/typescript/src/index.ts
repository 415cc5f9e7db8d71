export { type ApprovalRequest, type Approve, type Decision, LATER } from "./approval.js";
export { findBinary } from "./binary.js";
export {
  BinaryNotFoundError,
  ClosedError,
  MessageError,
  ProcessError,
  ReloadError,
  StartError,
  ToolError,
  ToolqError,
} from "./errors.js";
export { type Event, EventStream } from "./events.js";
export { Blocks, type CallContext, type Schema, type Tool, tool } from "./tool.js";
export { type AnswerOptions, type DeclarationFormat, Toolq, type ToolqOptions } from "./toolq.js";
