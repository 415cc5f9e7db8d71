/** A call that starts only if it is approved. */
export interface ApprovalRequest {
  toolUseId: string;
  toolName: string;
  effect: "read" | "idempotent" | "write";
  /** What the call would run with: defaults are filled in. */
  input: Record<string, unknown>;
  /** The command, the request, or what else would run. */
  runs: Record<string, unknown>;
  turn: number;
}

/** Yes or no, and why. The model reads the reason after a no; after a yes it stands in the session log. */
export interface Decision {
  approved: boolean;
  reason?: string;
}

/** The call isn't run now: it waits for `toolq approvals approve`, and its message has to be answered again. */
export const LATER: Decision = { approved: false };

export type Approve = (request: ApprovalRequest) => boolean | Decision | Promise<boolean | Decision>;

const FAILED: Decision = { approved: false, reason: "nobody could be asked: the approval itself failed" };

/** Asks the callback. Whatever isn't a clear yes is a no. */
export async function decide(approve: Approve | undefined, call: Record<string, unknown>): Promise<Decision> {
  if (approve === undefined) return { approved: false, reason: "nobody could be asked" };
  try {
    const answer: unknown = await approve({
      toolUseId: call["tool_use_id"] as string,
      toolName: call["tool_name"] as string,
      effect: call["effect"] as ApprovalRequest["effect"],
      input: call["input"] as Record<string, unknown>,
      runs: call["runs"] as Record<string, unknown>,
      turn: call["turn"] as number,
    });
    if (typeof answer === "boolean") return { approved: answer };
    const decision = answer as Decision | null | undefined;
    if (typeof decision?.approved === "boolean") return decision;
    process.emitWarning("approve returned neither a boolean nor { approved }, so the call is denied", "ToolqWarning");
  } catch (error) {
    process.emitWarning(`approve failed, so the call is denied: ${String(error)}`, "ToolqWarning");
  }
  return FAILED;
}
