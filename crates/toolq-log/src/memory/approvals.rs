//! The calls that wait for an approval, and what people decide.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::claims::{ClaimsDir, Decided, EntryName, Made, Question};
use crate::error::LogError;
use crate::identity::meaning_hex;
use crate::memory::RememberedIn;
use crate::memory::decision::Decision;
use crate::memory::store::MemoryStore;
use crate::records::sha256_hex;
use redact::Mask;
use toolq_core::json::{JsonText, meaning_digest};
use toolq_core::types::{
    AcceptedCall, Approval, ApprovalDecision, ApprovalMeans, CallRef, RecalledCall,
};

/// Number of hexadecimal digits of what stands for a question.
const HANDLE_DIGITS: usize = 12;

/// A call that asked for an approval and didn't run. A call that comes with another input asks anew: who says yes means what was
/// shown.
#[derive(Debug, Clone)]
pub struct WaitingCall {
    /// What it is approved or denied by: its id, unless that says little or several questions have it.
    pub id: String,
    /// What stands for this question alone.
    pub handle: String,
    /// Its id, as recorded. Empty if its log is gone.
    pub tool_use_id: String,
    /// Its tool. Empty if its log is gone.
    pub tool: String,
    /// Its input as JSON, if that is there.
    pub input: Option<String>,
    /// When it was asked for, in milliseconds since 1970.
    pub asked_ms: Option<u64>,
    /// The log of the run that asked.
    pub log: PathBuf,
    /// Where the first run of that log was started. Empty if it is gone.
    pub directory: String,
    /// What somebody has said.
    pub decision: Option<ApprovalDecision>,
    name: EntryName,
    /// Where its log has it: calls of one turn are asked about at once.
    offset: u64,
    /// The number of the question, counted from 1.
    number: u32,
}

/// Returns a digest of what a log has of a call that asks for an approval, with its input as it would run: what names it for people
/// may name others.
pub fn asked_digest(call: &CallRef, input: &str, mask: &Mask) -> String {
    let [id, tool] = [&*call.tool_use_id, &*call.tool_name].map(|name| mask.apply(name));
    digest_of_recorded(&id, &tool, &mask.apply_to_json(input))
}

fn digest_of_recorded(tool_use_id: &str, tool: &str, input: &str) -> String {
    let meaning = meaning_digest(JsonText::new(input));
    sha256_hex(format!("{tool_use_id}\0{tool}\0{meaning:?}").as_bytes())
}

impl WaitingCall {
    /// Returns the [`asked_digest`] of the call.
    pub fn asked_digest(&self) -> String {
        let input = self.input.as_deref().unwrap_or_default();
        digest_of_recorded(&self.tool_use_id, &self.tool, input)
    }
}

/// Returns the calls of a memory that asked for an approval and didn't run, the latest last. `log` is the one that is the memory, if
/// one is.
///
/// # Errors
/// The memory can't be read.
pub fn waiting_calls(place: &RememberedIn, log: &Path) -> Result<Vec<WaitingCall>, LogError> {
    let store = MemoryStore::for_people(place.clone(), log);
    let Some(entries) = store.open_entries()? else {
        return Ok(Vec::new());
    };
    let fail = LogError::io(entries.path(), "read");
    // What was asked again counts as it was asked last.
    let mut asked: BTreeMap<(String, String), (EntryName, u32)> = BTreeMap::new();
    for entry in entries.list().map_err(fail)? {
        let Some((name, suffix)) = EntryName::parse(&entry) else {
            continue;
        };
        let number = suffix.strip_prefix(".q").and_then(|text| text.parse().ok());
        let Some(number) = number else { continue };
        if let Some(question) = entries.read_question(&name, number).map_err(fail)? {
            let latest = asked.entry((name.to_string(), question.word));
            let latest = latest.or_insert((name, number));
            latest.1 = latest.1.max(number);
        }
    }
    let mut waiting: Vec<WaitingCall> = Vec::new();
    for (name, number) in asked.into_values() {
        if !store.has_started(&name)? {
            waiting.extend(store.describe_question(&entries, name, number)?);
        }
    }
    // A tool that has changed asks anew about the same input.
    let asks = |call: &WaitingCall| {
        let input = call.input.as_deref();
        let meaning = input.map(|json| meaning_digest(JsonText::new(json)));
        (call.name.to_string(), meaning)
    };
    let asked: Vec<_> = waiting
        .iter()
        .map(|call| (asks(call), call.number))
        .collect();
    waiting.retain(|call| {
        let mut same = asked.iter().filter(|(other, _)| *other == asks(call));
        same.all(|(_, number)| *number <= call.number)
    });
    let ids: Vec<String> = waiting.iter().map(|call| call.id.clone()).collect();
    for call in &mut waiting {
        if ids.iter().filter(|id| **id == call.id).count() > 1 {
            call.id.clone_from(&call.handle);
        }
    }
    waiting.sort_by_key(|call| (call.asked_ms, call.offset));
    Ok(waiting)
}

/// Records the decision about a call that waits. Of two at once, the first one counts; later, it can be turned around.
///
/// # Errors
/// It can't be recorded.
pub fn decide_call(
    place: &RememberedIn,
    call: &WaitingCall,
    decided: &Decided,
) -> Result<Made<Decided>, LogError> {
    let store = MemoryStore::for_people(place.clone(), &call.log);
    store.make_entry(|entries| {
        let number = match entries.read_question(&call.name, call.number)? {
            Some(question) if call.decision.is_some() => {
                entries.ask(&call.name, &question, true)?
            }
            _ => call.number,
        };
        entries.decide(&call.name, number, decided)
    })
}

impl MemoryStore {
    /// Returns whether an attempt was started, so that nobody waits for an approval any more.
    fn has_started(&self, name: &EntryName) -> Result<bool, LogError> {
        let known = self.known_calls(&name.key)?;
        let mut same = known.iter().filter(|call| call.instance == name.instance);
        Ok(same.any(|call| call.attempt >= name.attempt))
    }

    fn describe_question(
        &self,
        entries: &ClaimsDir,
        name: EntryName,
        number: u32,
    ) -> Result<Option<WaitingCall>, LogError> {
        let fail = LogError::io(entries.path(), "read");
        let question = entries.read_question(&name, number).map_err(fail)?;
        let Some(question) = question else {
            return Ok(None);
        };
        let decided = entries.read_decision(&name, number).map_err(fail)?;
        let question_name = format!("{name} {}", question.word);
        let handle = sha256_hex(question_name.as_bytes())[..HANDLE_DIGITS].to_owned();
        let is_random_id = |id: &str| name.settle_id(id) == *id;
        let read = self.with_index(&question.log, |index| {
            Ok((index.read_call(question.offset), index.first_directory()))
        })?;
        let (call, directory) = read.unwrap_or_default();
        let (tool_use_id, tool, input, asked_ms) = match call {
            Some(call) => (
                call.tool_use_id,
                call.tool,
                call.input,
                Some(call.timestamp),
            ),
            None => Default::default(),
        };
        Ok(Some(WaitingCall {
            id: if is_random_id(&tool_use_id) {
                tool_use_id.clone()
            } else {
                handle.clone()
            },
            handle,
            tool_use_id,
            tool,
            input,
            asked_ms,
            log: self.log_path(&question.log),
            directory: directory.unwrap_or_default(),
            decision: decided.map(|decided| approval_of(decided).decision),
            name,
            offset: question.offset,
            number,
        }))
    }
}

// What a session asks and is told about its own calls.

impl MemoryStore {
    /// Returns what was said about the question whether an attempt may start that would run exactly this.
    pub(super) fn find_approval(
        &self,
        entry: &EntryName,
        digest: &str,
    ) -> Result<Option<Approval>, LogError> {
        let Some(entries) = self.open_entries()? else {
            return Ok(None);
        };
        let fail = LogError::io(entries.path(), "read");
        // Somebody may have asked again after a no.
        let mut last = None;
        for number in 1.. {
            let Some(question) = entries.read_question(entry, number).map_err(fail)? else {
                break;
            };
            if question.word == digest {
                last = Some(number);
            }
        }
        let Some(number) = last else { return Ok(None) };
        let decided = entries.read_decision(entry, number).map_err(fail)?;
        if decided.is_some() {
            entries.sync().map_err(fail)?;
        }
        Ok(decided.map(approval_of))
    }

    /// Returns the question whether a call may start that has no approval, with the attempt that it is about. `None` if it runs
    /// under another name meanwhile.
    pub(crate) fn question(
        &self,
        request: &RecalledCall<'_>,
    ) -> Result<Option<(EntryName, Question)>, LogError> {
        let (Some(accepted), Some(lookup)) = (request.accepted, self.look_up(request)?) else {
            return Ok(None);
        };
        if !matches!(
            lookup.recalled.decision,
            Decision::Run(_) | Decision::Renew(_)
        ) {
            return Ok(None);
        }
        let question = Question {
            log: self.own_log.clone(),
            offset: 0,
            word: approval_digest(accepted, &self.root),
            context: lookup.identity.context,
        };
        let entry = lookup.entry();
        // What a name stands for is one call, however often it is asked for.
        if lookup.identity.keys.is_name(&entry.key) {
            return Ok(Some((entry, question)));
        }
        let call = CallRef::new(request.call, None).key();
        let instance = self.take_free(&entry.key, entry.instance, &call);
        Ok(Some((EntryName { instance, ..entry }, question)))
    }
}

/// Returns a digest of what would run: the tool as it is declared, what its input means as it is executed, and where.
pub(super) fn approval_digest(accepted: &AcceptedCall, root: &Path) -> String {
    let definition = crate::records::definition_digests(&accepted.tool);
    let input = meaning_hex(accepted.input.meaning());
    let mut text = format!("{}\0{}\0{input}", root.display(), accepted.tool.name);
    for (part, digest) in definition {
        text.extend(["\0", part.as_str(), "\0", digest.as_str()]);
    }
    sha256_hex(text.as_bytes())[..16].to_owned()
}

/// Returns what a decision says about the question whether a call may start.
pub(crate) fn approval_of(decided: Decided) -> Approval {
    Approval {
        decision: if decided.approved {
            ApprovalDecision::Yes
        } else {
            ApprovalDecision::No
        },
        means: ApprovalMeans::Later,
        reason: decided.reason,
        user: decided.user,
    }
}
