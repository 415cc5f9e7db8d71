//! Runs calls of `read_output`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::spawn_blocking;

use crate::attempt::{Attempt, AttemptResult, canceled};
use crate::conversation_outputs::reading::{OutputFile, search_output};
use crate::conversation_outputs::{ConversationOutputs, KeptOutput};
use toolq_core::types::{
    CallEnding, CallOutput, CaptureStats, DEFAULT_PAGE_BYTES, Outcome, OutputRequest,
    OutputUnavailable, ResultContent,
};

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
