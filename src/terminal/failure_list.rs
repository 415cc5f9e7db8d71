//! The failures of a run, for a summary without a display of progress.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::terminal::call_caption::{
    self, CallLabels, MAX_PIPED_SUBJECT_COLUMNS, call_path, failure_line, mask_and_escape,
    short_subject,
};
use crate::terminal::repeat_command::RepeatCommand;
use redact::Mask;
use toolq_core::answer::failure_cause;
use toolq_core::text::format_count;
use toolq_core::types::{CallRef, CallRequest, Event, EventSink, Outcome, OutcomeKind, Status};

/// Maximum number of failures that are kept.
const MAX_FAILURES: usize = 1_000;

/// Collects the failures of a run.
pub struct FailureList {
    mask: Arc<Mask>,
    repeat: RepeatCommand,
    failures: Vec<CallFailure>,
    /// Number of failures that aren't kept.
    omitted: usize,
}

/// A failure, safe to show.
#[derive(Debug)]
pub(crate) struct CallFailure {
    /// The word for how the call ended.
    pub kind: OutcomeKind,
    /// The call, how it ended, and why.
    pub line: String,
    /// The command line that repeats it by hand, and what to do before.
    pub repeat: Option<String>,
}

impl FailureList {
    pub(crate) fn new(mask: Arc<Mask>, repeat: RepeatCommand) -> Self {
        Self {
            mask,
            repeat,
            failures: Vec::new(),
            omitted: 0,
        }
    }

    /// Returns the first failures, and how many others there were.
    pub fn failures(&self) -> (&[CallFailure], usize) {
        (&self.failures, self.omitted)
    }

    fn describe(
        &self,
        call: &CallRef,
        request: CallRequest<'_>,
        outcome: &Outcome,
        duration: Duration,
    ) -> CallFailure {
        let mask = &self.mask;
        let labels = CallLabels::new(request);
        let name = call_path(call, &labels.name);
        let repeat = self.repeat.repeat_of(request, mask);
        CallFailure {
            kind: outcome.kind(),
            line: failure_line(
                &mask_and_escape(&name, mask),
                &short_subject(&labels, mask, MAX_PIPED_SUBJECT_COLUMNS),
                &call_caption::failure_label(outcome, duration),
                failure_cause(outcome).as_deref(),
                mask,
            ),
            repeat: repeat.and_then(|repeat| repeat.line_after(outcome)),
        }
    }
}

impl EventSink for FailureList {
    fn handle_event(&mut self, event: &Event<'_>) {
        // A result from the log was reported by the run that made it.
        if let Event::Finished {
            call,
            request,
            outcome,
            duration,
            ..
        } = event
            && outcome.is_error()
            && !outcome.is_restored()
        {
            if self.failures.len() == MAX_FAILURES {
                self.omitted += 1;
            } else {
                let failure = self.describe(call, *request, outcome, *duration);
                self.failures.push(failure);
            }
        }
    }
}

// How many calls ended how, in the words that summaries, logs and pages share.

/// Counts the ends of calls by kind, and within a kind by status.
#[derive(Debug, Default)]
pub(crate) struct OutcomeTally(BTreeMap<OutcomeKind, BTreeMap<Status, usize>>);

impl OutcomeTally {
    /// Counts the end of a call.
    pub(crate) fn add(&mut self, kind: OutcomeKind, status: Status) {
        *self.0.entry(kind).or_default().entry(status).or_default() += 1;
    }

    /// Returns how many calls were counted.
    pub(crate) fn total(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).sum()
    }

    /// Formats the counts, one text a kind: `9 ok`, `3 failed (1 timeout)`, `1 rejected (unknown tool)`.
    pub(crate) fn labels(&self) -> Vec<String> {
        let kinds = self.0.iter();
        kinds
            .map(|(kind, statuses)| kind_label(*kind, statuses))
            .collect()
    }
}

fn kind_label(kind: OutcomeKind, statuses: &BTreeMap<Status, usize>) -> String {
    let (count, label): (usize, _) = (statuses.values().sum(), kind.label());
    // A status that says no more than the kind isn't repeated.
    let mut causes = statuses
        .iter()
        .filter(|(status, _)| status.label() != label);
    let causes: Vec<String> = match (causes.next(), statuses.len()) {
        (None, _) => return format!("{count} {label}"),
        (Some((status, _)), 1) => vec![status.label()],
        (Some(first), _) => std::iter::once(first)
            .chain(causes)
            .map(|(status, count)| format!("{count} {}", status.label()))
            .collect(),
    };
    format!("{count} {label} ({})", causes.join(", "))
}

/// Formats how many calls there were: `8 calls`, or `8 calls, and 4 of agents`.
pub(crate) fn calls_label(own: usize, of_agents: usize) -> String {
    let own = format_count(own as u64, "call");
    match of_agents {
        0 => own,
        of_agents => format!("{own}, and {of_agents} of agents"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use toolq_core::types::{
        CallEnding, CallOutput, CheckedCall, DoubtCause, StatusTemplates, Tool,
    };
    use toolq_testing::{
        accepted_call, rejected_call, sample_answer, sample_template, sample_tool, success_outcome,
    };

    fn emit_end(list: &mut FailureList, checked: &CheckedCall, outcome: &Outcome) {
        let call = &CallRef::new(&checked.call, None);
        let end = Event::Finished {
            call,
            request: checked.request(),
            outcome,
            answer: &sample_answer(call, "", outcome.is_error()),
            duration: Duration::from_secs(2),
            attempts: 1,
            agent_usage: None,
            claim: None,
        };
        list.emit(&[end]).unwrap();
    }

    fn failed() -> Outcome {
        Outcome::Failed {
            output: CallOutput::default(),
            ending: CallEnding::ExitCode(7),
        }
    }

    #[test]
    fn each_failure_names_its_call_and_how_to_repeat_it() {
        let described = Tool {
            display_name: Some("Reader".to_owned()),
            status: StatusTemplates {
                wait: None,
                doing: Some(sample_template("reading it")),
            },
            ..sample_tool("read")
        };
        let mut nested = accepted_call(2, sample_tool("search"), true, "{}");
        let agent = accepted_call(0, sample_tool("expert"), true, "{}");
        nested.call.parent = Some(Arc::new(CallRef::new(&agent.call, None)));
        let in_doubt = Outcome::InDoubt {
            cause: DoubtCause::EndNotLogged(None),
            output: CallOutput::default(),
        };
        let mut list = FailureList::new(Arc::new(Mask::new(["s3cr3t"])), RepeatCommand::new(""));
        let read = |input| accepted_call(1, sample_tool("read"), true, input);
        emit_end(&mut list, &read(r#"{"path":"a"}"#), &failed());
        emit_end(&mut list, &read(r#"{"key":"s3cr3t"}"#), &failed());
        emit_end(
            &mut list,
            &accepted_call(1, described, true, "{}"),
            &failed(),
        );
        emit_end(&mut list, &nested, &failed());
        emit_end(&mut list, &read("{}"), &in_doubt);
        emit_end(&mut list, &rejected_call(3, "nobody"), &failed());
        let (failures, omitted) = list.failures();
        assert_eq!(omitted, 0);
        let lines: Vec<(&str, Option<&str>)> = failures
            .iter()
            .map(|failure| (&*failure.line, failure.repeat.as_deref()))
            .collect();
        let expected = [
            (
                r#"read toolu_1 {"path":"a"}: exit 7, 2s"#,
                Some(r#"repeat: toolq call read '{"path":"a"}'"#),
            ),
            (r#"read toolu_1 {"key":"[masked]"}: exit 7, 2s"#, None),
            (
                "Reader toolu_1 (reading it): exit 7, 2s",
                Some("repeat: toolq call read '{}'"),
            ),
            (
                "expert › search toolu_2: exit 7, 2s",
                Some("repeat: toolq call search '{}'"),
            ),
            ("read toolu_1: 2s", None),
            ("nobody toolu_3: exit 7, 2s", None),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_succeeds_or_was_reported_before_is_left_out_and_many_are_counted() {
        let mut list = FailureList::new(Arc::default(), RepeatCommand::new(""));
        let call = accepted_call(0, sample_tool("read"), true, "{}");
        emit_end(&mut list, &call, &success_outcome("x"));
        assert!(list.failures().0.is_empty());
        for _ in 0..MAX_FAILURES + 3 {
            emit_end(&mut list, &call, &failed());
        }
        let (failures, omitted) = list.failures();
        assert_eq!((failures.len(), omitted), (MAX_FAILURES, 3));
    }
}

#[cfg(test)]
mod outcome_tally_tests {
    use super::*;

    #[test]
    fn a_kind_says_why_unless_that_is_the_same_word() {
        let mut tally = OutcomeTally::default();
        for (kind, status) in [
            (OutcomeKind::Ok, Status::Ok),
            (OutcomeKind::Failed, Status::Failed),
            (OutcomeKind::Failed, Status::Timeout),
            (OutcomeKind::Failed, Status::Failed),
            (OutcomeKind::Rejected, Status::InvalidInput),
            (OutcomeKind::Rejected, Status::UnknownTool),
            (OutcomeKind::Skipped, Status::NeedsApproval),
            (OutcomeKind::Skipped, Status::NeedsApproval),
            (OutcomeKind::InDoubt, Status::InDoubt),
        ] {
            tally.add(kind, status);
        }
        assert_eq!(
            tally.labels(),
            [
                "1 ok",
                "3 failed (1 timeout)",
                "2 rejected (1 invalid input, 1 unknown tool)",
                "2 skipped (needs approval)",
                "1 in doubt"
            ]
        );
        assert_eq!(tally.total(), 9);
    }

    #[test]
    fn calls_of_agents_are_counted_apart() {
        assert_eq!(calls_label(1, 0), "1 call");
        assert_eq!(calls_label(8, 4), "8 calls, and 4 of agents");
    }
}
