//! What became of a call: its verdict, today's answer and the recorded one put together.

use crate::replay::case::{Difference, End, Kind, Open};
use crate::replay::compare::{Mismatch, Rules, mismatches};
use crate::replay::policy;
use crate::replay::result_collector::Today;
use crate::replay::session::{File, Replay};
use crate::replay::update::rewritten;
use toolq_core::transcript::{InputError, Reply};
use toolq_core::types::{Accepted, Checked, Recorded, Rejection, Verdict};

impl Replay {
    /// What became of a call.
    pub(super) fn end(
        &self,
        checked: &Checked,
        today: Option<Today>,
        turn: usize,
        file: &mut File<'_>,
    ) -> Result<End, InputError> {
        let position = checked.call.position;
        match (&checked.verdict, today) {
            (_, Some(today)) if today.ended => Ok(End::Open(Open::Ended)),
            (Verdict::Rejected(rejection), _) => {
                let reply = file.recording.reply(turn, position)?;
                Ok(self.refused(checked, rejection, reply.as_ref()))
            }
            (Verdict::Accepted(accepted), Some(today)) => {
                match file.recording.reply(turn, position)? {
                    Some(reply) => Ok(self.compared(accepted, &reply, &today, file)),
                    None => Ok(End::Open(Open::NoResult)),
                }
            }
            (Verdict::Accepted(_), None) if file.recording.has_reply(turn, position) => {
                Ok(End::Served)
            }
            (Verdict::Accepted(_), None) if turn == file.last => Ok(End::Open(Open::NoResult)),
            (Verdict::Accepted(_), None) => Ok(End::Differs(vec![Difference {
                kind: Kind::Missing,
                path: String::new(),
                expected: None,
                actual: None,
            }])),
        }
    }

    /// A call that is refused today holds where it failed when it was recorded.
    fn refused(&self, checked: &Checked, rejection: &Rejection, reply: Option<&Reply>) -> End {
        let call = &checked.call;
        let failed = |recorded: &Recorded| {
            policy::was_error(recorded, call, rejection, &self.tools, &self.mask)
        };
        if reply.is_some_and(|reply| failed(&reply.recorded)) {
            return End::Served;
        }
        End::Differs(policy::refused(call, rejection, &self.mask))
    }

    /// Today's answer beside the recorded one.
    fn compared(
        &self,
        accepted: &Accepted,
        reply: &Reply,
        today: &Today,
        file: &mut File<'_>,
    ) -> End {
        let rules = Rules {
            compare: accepted.tool.compare,
            ignored: [&accepted.tool.ignore, &self.settings.ignored],
            tolerance: self.settings.tolerance,
            rename: self.settings.rename,
        };
        let found = mismatches(&reply.recorded, &today.answer, &rules, &mut file.ids);
        if found.is_empty() {
            return End::Matched;
        }
        if self.settings.update
            && let Some(edit) = rewritten(reply, file.recording.dialect(), &today.answer)
        {
            file.edits.push(edit);
        }
        let masked = |json: Option<String>| json.map(|json| self.mask.json(&json).into_owned());
        let difference = |mismatch: Mismatch| Difference {
            kind: Kind::Result,
            path: self.mask.text(&mismatch.path).into_owned(),
            expected: masked(mismatch.expected),
            actual: masked(mismatch.actual),
        };
        End::Differs(found.into_iter().map(difference).collect())
    }
}
