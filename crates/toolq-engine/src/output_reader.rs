//! Runs calls of `read_output`.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::bytes::Regex;
use rustix::fs::{Mode, OFlags};
use tokio::task::spawn_blocking;

use crate::attempt::{Attempt, AttemptResult, canceled};
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

// Reads a part of a kept output, or looks for a pattern in it.

/// An output that is open for reading.
#[derive(Debug)]
pub(super) struct OutputFile {
    file: File,
    pub(super) len: u64,
}

/// A part of an output, cut between characters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OutputPage {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) text: String,
}

impl OutputFile {
    /// Opens a kept output. A program may have put something else in its place, so only a regular file of this user is taken,
    /// and no link.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file: File = rustix::fs::open(path, flags, Mode::empty())?.into();
        let metadata = file.metadata()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !is_own || metadata.nlink() != 1 {
            return Err(io::Error::other("it isn't a file that toolq wrote"));
        }
        let len = metadata.len();
        Ok(Self { file, len })
    }

    /// Returns the bytes from `begin` to `end`, as far as there are some.
    fn read_bytes(&self, begin: u64, end: u64) -> io::Result<Vec<u8>> {
        let wanted = end.min(self.len).saturating_sub(begin);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes)
    }

    /// Returns at most `limit` bytes from `offset`, which must be before the end. The page begins with the character that has
    /// this byte, and has at least one character.
    pub(super) fn read_page(&self, offset: u64, limit: u64) -> io::Result<OutputPage> {
        let margin = MAX_CHAR_BYTES as u64;
        let from = offset.saturating_sub(margin);
        let wanted_end = offset.saturating_add(limit).min(self.len);
        let bytes = self.read_bytes(from, wanted_end.saturating_add(margin))?;
        let place = |position: u64| usize::try_from(position - from).unwrap_or(usize::MAX);
        let begin = floor_boundary(&bytes, place(offset));
        let mut end = floor_boundary(&bytes, place(wanted_end));
        if end <= begin {
            end = begin + unit_len(&bytes[begin..]);
        }
        Ok(OutputPage {
            begin: from + begin as u64,
            end: from + end as u64,
            text: String::from_utf8_lossy(&bytes[begin..end]).into_owned(),
        })
    }
}

// Where a text that may have invalid bytes can be cut, so that its parts decode to what the whole decodes to.

/// The longest encoding of a character.
const MAX_CHAR_BYTES: usize = 4;

/// Returns the last place at or before `at` where `bytes` can be cut. `bytes` must have the [`MAX_CHAR_BYTES`] - 1 bytes before and
/// after `at`, where the text has them.
fn floor_boundary(bytes: &[u8], at: usize) -> usize {
    let earliest = at.saturating_sub(MAX_CHAR_BYTES - 1);
    let is_first = |place: &usize| {
        bytes
            .get(*place)
            .is_some_and(|byte| !is_continuation(*byte))
    };
    match (earliest..at).rfind(is_first) {
        Some(first) if first + unit_len(&bytes[first..]) > at => first,
        _ => at,
    }
}

/// Returns the length of the bytes that decode to the first character: its own, or invalid ones that become one
/// replacement character. `bytes` begins where a text can be cut.
fn unit_len(bytes: &[u8]) -> usize {
    let bytes = &bytes[..bytes.len().min(MAX_CHAR_BYTES)];
    let Some(chunk) = bytes.utf8_chunks().next() else {
        return 0;
    };
    match chunk.valid().chars().next() {
        Some(first) => first.len_utf8(),
        None => chunk.invalid().len(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

// Looks for a pattern in a kept output, in a window of limited size.

/// How much of an output is held in memory.
const WINDOW_BYTES: usize = 1 << 20;
/// How much of a window is left to the next one, so that a match of up to this length is found wherever it is.
const OVERLAP_BYTES: usize = 64 << 10;
/// How much of a line is shown before a match, and how much from its beginning on.
const EXCERPT_BYTES_BEFORE: usize = 100;
const EXCERPT_BYTES: usize = 400;

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundExcerpts {
    /// Lines of the form `OFFSET: EXCERPT`.
    pub(super) text: String,
    pub(super) count: usize,
    /// Where to continue the search. `None` if all of the output was searched.
    pub(super) next: Option<u64>,
}

/// A part of the output, and where to continue the search in it.
struct SearchWindow {
    bytes: Vec<u8>,
    /// The offset of its first byte.
    begin: u64,
    /// The place in `bytes` where the search continues. What is before it is context for `^` and `\b`.
    position: usize,
    is_last: bool,
}

/// Returns the parts of lines that match, from `offset` on, at most `limit` bytes of text. `is_canceled` is checked
/// repeatedly.
pub(super) fn search_output(
    output: &OutputFile,
    pattern: &Regex,
    offset: u64,
    limit: usize,
    is_canceled: &dyn Fn() -> bool,
) -> io::Result<FoundExcerpts> {
    let mut found = FoundExcerpts::default();
    let mut window = SearchWindow::read(output, offset)?;
    while !is_canceled() {
        let searched = if window.is_last {
            window.bytes.len()
        } else {
            window.bytes.len() - OVERLAP_BYTES
        };
        let matched = window.position <= window.bytes.len();
        let matched = matched.then(|| pattern.find_at(&window.bytes, window.position));
        let matched = matched.flatten().map(|found| found.range());
        let matched = matched.filter(|range| range.start <= searched);
        let Some(range) = matched else {
            if window.is_last {
                return Ok(found);
            }
            let next = window.begin + window.position.max(searched) as u64;
            window = SearchWindow::read(output, next)?;
            continue;
        };
        // Nothing is left after the last line break.
        if range.start == window.bytes.len() && window.is_last && window.ends_line() {
            return Ok(found);
        }
        let matched_end = range.end;
        let excerpt = window.excerpt(range);
        let at = window.begin + excerpt.start as u64;
        let line = format!("{at}: {}\n", window.text_of(&excerpt));
        if found.count > 0 && found.text.len() + line.len() > limit {
            found.next = Some(at);
            return Ok(found);
        }
        let _ = found.text.write_str(&line);
        found.count += 1;
        window.position = window.after(excerpt.end.max(matched_end));
    }
    Ok(found)
}

impl SearchWindow {
    fn read(output: &OutputFile, offset: u64) -> io::Result<Self> {
        let begin = offset.saturating_sub(EXCERPT_BYTES_BEFORE as u64);
        let bytes = output.read_bytes(begin, begin + WINDOW_BYTES as u64)?;
        Ok(Self {
            is_last: begin + bytes.len() as u64 >= output.len,
            position: usize::try_from(offset - begin).unwrap_or(usize::MAX),
            bytes,
            begin,
        })
    }

    /// Returns the part of the lines of a match that is shown.
    fn excerpt(&self, matched: Range<usize>) -> Range<usize> {
        let is_break = |byte: &u8| *byte == b'\n';
        let before = &self.bytes[self.position.min(matched.start)..matched.start];
        let line = before.iter().rposition(is_break).map(|at| at + 1);
        let line = self.position.min(matched.start) + line.unwrap_or(0);
        let begin = line.max(matched.start.saturating_sub(EXCERPT_BYTES_BEFORE));
        let rest = &self.bytes[matched.end..];
        let line_end = rest.iter().position(is_break);
        let line_end = line_end.map_or(self.bytes.len(), |at| matched.end + at);
        let end = line_end.min(matched.start + EXCERPT_BYTES);
        let (begin, end) = (
            floor_boundary(&self.bytes, begin).max(self.position.min(matched.start)),
            floor_boundary(&self.bytes, end),
        );
        begin..end.max(begin)
    }

    /// Returns an excerpt with a mark at each end where its line continues.
    fn text_of(&self, excerpt: &Range<usize>) -> String {
        let text = String::from_utf8_lossy(&self.bytes[excerpt.clone()]);
        let text = text.trim_end_matches('\r');
        let begins_line = excerpt.start == 0 && self.begin == 0
            || excerpt.start > 0 && self.bytes[excerpt.start - 1] == b'\n';
        let ends_line = match self.bytes.get(excerpt.end) {
            Some(byte) => *byte == b'\n',
            None => self.is_last,
        };
        let mark = |is_whole| if is_whole { "" } else { "…" };
        format!("{}{text}{}", mark(begins_line), mark(ends_line))
    }

    /// Returns where to search after what was found: after its line break, and at least one byte further.
    fn after(&self, end: usize) -> usize {
        let at_break = self.bytes.get(end) == Some(&b'\n');
        let next = end + usize::from(at_break);
        next.max(self.position + 1)
    }

    fn ends_line(&self) -> bool {
        self.bytes.last() == Some(&b'\n')
    }
}
