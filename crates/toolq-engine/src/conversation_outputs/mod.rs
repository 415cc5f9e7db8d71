//! The outputs of a conversation that were cut, for `read_output`. Models name them by the ids of calls, never by paths, and each
//! conversation knows only its own: the turns of an input, those of one agent, or the calls of one client.

mod search;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::spawn_blocking;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::conversation_outputs::search::{OutputFile, search_output};
use toolq_core::types::{
    Backing, BuiltinTool, CallEnding, CallOutput, CallRef, CaptureStats, DEFAULT_PAGE_BYTES,
    Outcome, OutputRequest, OutputUnavailable, ResultContent, Tool,
};

/// How many calls of a conversation are remembered. Of older ones, nothing can be read.
const MAX_CALLS: usize = 10_000;
/// The longest id by which an output can be read, in bytes.
const MAX_ID_BYTES: usize = 256;
/// How many ids are listed for a model that named another one.
const MAX_LISTED_IDS: usize = 20;

/// What is known of the outputs of one conversation. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ConversationOutputs(Arc<Mutex<OutputIndex>>);

#[derive(Debug, Default)]
struct OutputIndex {
    outputs: HashMap<Arc<str>, OutputState>,
    /// In the order in which the calls ended.
    ids: VecDeque<Arc<str>>,
}

/// What is left of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OutputState {
    /// The result of the call has all of it.
    Whole,
    /// It was cut, and the rest is lost.
    Lost,
    /// It was cut, and a file has it.
    Kept(KeptOutput),
}

/// A file with an output that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeptOutput {
    path: PathBuf,
    /// Whether the file has only the beginning.
    is_partial: bool,
}

impl ConversationOutputs {
    /// Remembers what is left of the output of a call that has ended. `output_dir` is where outputs are kept. Returns whether
    /// `read_output` finds more of it than the result has.
    pub(crate) fn note_end(
        &self,
        call: &CallRef,
        tool: Option<&Tool>,
        outcome: &Outcome,
        output_dir: Option<&Path>,
    ) -> bool {
        // A page of `read_output` isn't an output of its own. Since ids may repeat, it must not replace one.
        let is_page = tool.is_some_and(|tool| {
            matches!(
                tool.backing,
                Some(Backing::Builtin(BuiltinTool::ReadOutput))
            )
        });
        if is_page || call.tool_use_id.len() > MAX_ID_BYTES {
            return false;
        }
        let state = output_state(tool, outcome, output_dir);
        let is_kept = matches!(state, OutputState::Kept(_));
        let id: Arc<str> = call.tool_use_id.as_str().into();
        let mut index = self.lock();
        // An id that is used again means the later call.
        if index.outputs.insert(Arc::clone(&id), state).is_some() {
            index.ids.retain(|other| *other != id);
        }
        index.ids.push_back(id);
        if index.ids.len() > MAX_CALLS
            && let Some(oldest) = index.ids.pop_front()
        {
            index.outputs.remove(&oldest);
        }
        is_kept
    }

    /// Returns the file with the output of a call.
    ///
    /// # Errors
    /// There is no such file.
    fn find(&self, id: &str) -> Result<KeptOutput, OutputUnavailable> {
        let index = self.lock();
        let id = || id.to_owned();
        match index.outputs.get(&*id()) {
            Some(OutputState::Kept(kept)) => Ok(kept.clone()),
            Some(OutputState::Whole) => Err(OutputUnavailable::NotCut { id: id() }),
            Some(OutputState::Lost) => Err(OutputUnavailable::NotKept { id: id() }),
            None => {
                let (known, more) = index.kept_ids();
                let id = id();
                Err(OutputUnavailable::UnknownId { id, known, more })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutputIndex> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputIndex {
    /// Returns the ids of the latest outputs that can be read, in order, and how many there are before them.
    fn kept_ids(&self) -> (Vec<String>, usize) {
        let is_kept = |id: &&Arc<str>| matches!(self.outputs.get(*id), Some(OutputState::Kept(_)));
        let kept: Vec<&Arc<str>> = self.ids.iter().filter(is_kept).collect();
        let more = kept.len().saturating_sub(MAX_LISTED_IDS);
        let listed = kept[more..].iter().map(ToString::to_string);
        (listed.collect(), more)
    }
}

fn output_state(tool: Option<&Tool>, outcome: &Outcome, output_dir: Option<&Path>) -> OutputState {
    let is_partial = |total_bytes| tool.is_none_or(|tool| total_bytes > tool.max_saved);
    if let Outcome::Restored(restored) = outcome {
        let Some(cut) = &restored.cut_output else {
            return OutputState::Whole;
        };
        let file_name = cut.file_name.as_deref().map(Path::new);
        // Only files in the directory of this log: what the log says about others is no reason to open them.
        let file_name = file_name.and_then(Path::file_name);
        return match (output_dir, file_name) {
            (Some(dir), Some(name)) => OutputState::Kept(KeptOutput {
                path: dir.join(name),
                is_partial: is_partial(cut.total_bytes),
            }),
            _ => OutputState::Lost,
        };
    }
    match outcome.captured() {
        Some(captured) if captured.cut_bytes > 0 => match &captured.saved_path {
            Some(path) => OutputState::Kept(KeptOutput {
                path: path.to_path_buf(),
                is_partial: is_partial(captured.total_bytes),
            }),
            None => OutputState::Lost,
        },
        _ => OutputState::Whole,
    }
}

// Runs calls of `read_output`.

/// Reads kept outputs.
#[derive(Debug)]
pub(crate) struct OutputReadRunner;

/// Stops a search whose result is no longer needed.
struct SearchStop(Arc<AtomicBool>);

impl Drop for SearchStop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl OutputReadRunner {
    /// Runs one attempt: reads from an output of the conversation that made the call.
    pub(crate) async fn run(request: &OutputRequest, attempt: Attempt) -> AttemptResult {
        let Attempt {
            job,
            timeout: limit,
            cancel,
            output_counter,
            control,
            outputs,
            ..
        } = attempt;
        let max_bytes = job.accepted.tool.max_output;
        let stop = SearchStop(Arc::default());
        let is_stopped = Arc::clone(&stop.0);
        let request = request.clone();
        let reading = spawn_blocking(move || {
            let is_stopped = || is_stopped.load(Ordering::Relaxed);
            read_output(outputs.as_ref(), &request, max_bytes, &is_stopped)
        });
        let read = tokio::select! {
            read = reading => read,
            () = canceled(cancel, &control) => return AttemptResult::canceled_while_running(CallOutput::default()),
            () = control.sleep(limit.duration) => return timed_out(limit.configured).into(),
        };
        match read {
            Ok(Ok(text)) => {
                output_counter.add(text.len());
                succeeded(text).into()
            }
            Ok(Err(why)) => Outcome::OutputUnavailable(why).into(),
            Err(error) => Outcome::InternalError(error.to_string()).into(),
        }
    }
}

fn timed_out(limit: std::time::Duration) -> Outcome {
    Outcome::TimedOut {
        limit,
        no_calls_started: false,
        output: CallOutput::default(),
    }
}

fn succeeded(text: String) -> Outcome {
    Outcome::Succeeded {
        captured: CaptureStats {
            total_bytes: text.len() as u64,
            cut_offset: text.len(),
            ..CaptureStats::default()
        },
        content: ResultContent::Text(text),
        ending: CallEnding::Answered,
        for_clients: None,
    }
}

/// Returns a line that says what follows and where to continue, and then the part of the output, or what matches in it.
fn read_output(
    outputs: Option<&ConversationOutputs>,
    request: &OutputRequest,
    max_bytes: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<String, OutputUnavailable> {
    let outputs = outputs.ok_or(OutputUnavailable::NoConversation)?;
    let KeptOutput { path, is_partial } = outputs.find(&request.id)?;
    let gone = |_| OutputUnavailable::Gone {
        id: request.id.clone(),
    };
    let file = OutputFile::open(&path).map_err(gone)?;
    let (offset, len) = (request.offset, file.len);
    if offset >= len {
        return Err(OutputUnavailable::PastEnd { offset, len });
    }
    let limit = request.limit.unwrap_or(DEFAULT_PAGE_BYTES).min(max_bytes);
    let end_note = if is_partial {
        "the end of what was kept"
    } else {
        "the end"
    };
    let next_note = |next: u64| format!("continue with \"offset\": {next}");
    let Some(pattern) = &request.pattern else {
        let page = file.read_page(offset, limit).map_err(gone)?;
        let (begin, end) = (page.begin, page.end);
        let note = if end < len {
            next_note(end)
        } else {
            end_note.to_owned()
        };
        return Ok(format!(
            "[bytes {begin} to {end} of {len}; {note}]\n{}",
            page.text
        ));
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = search_output(&file, pattern, offset, limit, is_stopped).map_err(gone)?;
    let matches = match found.count {
        0 => "no match".to_owned(),
        1 => "1 match".to_owned(),
        count => format!("{count} matches"),
    };
    let end = found.next.unwrap_or(len);
    let note = found.next.map_or(end_note.to_owned(), next_note);
    Ok(format!(
        "[{matches} in bytes {offset} to {end} of {len}; {note}]\n{}",
        found.text.trim_end_matches('\n')
    ))
}
