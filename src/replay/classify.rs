//! Classifies a replayed call by its verdict, its current result, and its recorded result.

use crate::replay::case::{CaseDifference, CaseResult, DifferenceKind, IncompleteCause};
use crate::replay::compare::{CompareRules, ResultMismatch, find_mismatches};
use crate::replay::policy;
use crate::replay::replayer::{ActualResult, RecordingContext, RecordingReplayer};
use crate::replay::update::rewrite_reply;
use toolq_core::answer;
use toolq_core::transcript::{InputError, RecordedReply};
use toolq_core::types::{
    AcceptedCall, CheckedCall, Effect, RecordedResult, Rejection, ResultContent, Verdict,
};

impl RecordingReplayer {
    /// Classifies a call. `actual` is its current result, if it ran.
    pub(super) fn classify_call(
        &self,
        checked: &CheckedCall,
        actual: Option<ActualResult>,
        turn: usize,
        file: &mut RecordingContext<'_>,
    ) -> Result<CaseResult, InputError> {
        let position = checked.call.position;
        if file.recording.is_abandoned(turn, position) {
            return Ok(CaseResult::Incomplete(IncompleteCause::Abandoned));
        }
        match (&checked.verdict, actual) {
            (_, Some(actual)) if actual.halted => {
                Ok(CaseResult::Incomplete(IncompleteCause::Halted))
            }
            (Verdict::Rejected(rejection), _) => {
                let reply = file.recording.reply(turn, position)?;
                Ok(self.classify_rejected(checked, rejection, reply.as_ref()))
            }
            (Verdict::Accepted(accepted), Some(actual)) => {
                match file.recording.reply(turn, position)? {
                    Some(reply) => Ok(self.compare_answers(accepted, &reply, &actual, file)),
                    None => Ok(CaseResult::Incomplete(IncompleteCause::NoResult)),
                }
            }
            (Verdict::Accepted(_), None) if file.recording.has_reply(turn, position) => {
                Ok(CaseResult::Served)
            }
            (Verdict::Accepted(_), None) if turn == file.last_turn => {
                Ok(CaseResult::Incomplete(IncompleteCause::NoResult))
            }
            (Verdict::Accepted(_), None) => Ok(CaseResult::Differs(vec![CaseDifference {
                kind: DifferenceKind::Missing,
                path: String::new(),
                expected: None,
                actual: None,
            }])),
        }
    }

    /// Classifies a call that is rejected today. It matches if it was rejected when it was recorded, too.
    fn classify_rejected(
        &self,
        checked: &CheckedCall,
        rejection: &Rejection,
        reply: Option<&RecordedReply>,
    ) -> CaseResult {
        let call = &checked.call;
        let was_rejected = |recorded: &RecordedResult| {
            policy::was_rejected_when_recorded(recorded, call, rejection, &self.tools, &self.mask)
        };
        if reply.is_some_and(|reply| was_rejected(&reply.result)) {
            return CaseResult::Served;
        }
        CaseResult::Differs(policy::rejection_differences(call, rejection, &self.mask))
    }

    /// Whether both results are empty texts. Recordings by other programs have an empty text where toolq puts words.
    fn are_both_empty(
        &self,
        accepted: &AcceptedCall,
        reply: &RecordedReply,
        actual: &ActualResult,
    ) -> bool {
        let tool = &*accepted.tool;
        let empty = answer::empty_output_text(&tool.name, Some(tool), &tool.messages);
        let empty = self.mask.apply(&empty);
        let is_empty_text =
            matches!(&actual.answer.content, ResultContent::Text(text) if *text == empty);
        reply.result.is_error != Some(true)
            && !actual.answer.is_error
            && reply.result.content.is_empty()
            && is_empty_text
    }

    /// Compares the current result with the recorded one. With `--update`, also adds an edit if they differ.
    fn compare_answers(
        &self,
        accepted: &AcceptedCall,
        reply: &RecordedReply,
        actual: &ActualResult,
        file: &mut RecordingContext<'_>,
    ) -> CaseResult {
        let rules = CompareRules {
            compare: accepted.tool.compare,
            ignored: [&accepted.tool.ignore, &self.settings.ignored],
            normalizers: [&accepted.tool.normalize, &self.settings.normalizers],
        };
        if self.are_both_empty(accepted, reply, actual) {
            return CaseResult::Matched;
        }
        let mismatches = find_mismatches(&reply.result, &actual.answer, &rules, &mut file.renaming);
        if mismatches.is_empty() {
            return CaseResult::Matched;
        }
        let stale_after = file
            .unapplied
            .clone()
            .filter(|_| accepted.tool.effect == Effect::Read);
        // A stale result isn't what the tool returns after the recorded calls, so it doesn't belong into the recording.
        if self.settings.update_recordings
            && stale_after.is_none()
            && let Some(edit) = rewrite_reply(reply, &actual.answer)
        {
            file.edits.push(edit);
        }
        let masked =
            |json: Option<String>| json.map(|json| self.mask.apply_to_json(&json).into_owned());
        let difference = |mismatch: ResultMismatch| CaseDifference {
            kind: DifferenceKind::Result,
            path: self.mask.apply(&mismatch.path).into_owned(),
            expected: masked(mismatch.recorded),
            actual: masked(mismatch.current),
        };
        let differences = mismatches.into_iter().map(difference).collect();
        match stale_after {
            None => CaseResult::Differs(differences),
            Some(after) => CaseResult::Stale {
                after,
                differences,
                is_failure: self.settings.strict,
            },
        }
    }
}
