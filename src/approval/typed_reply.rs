//! Reads what a person types in reply to a question, and understands only what is clear.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

/// How often a pending question checks whether it was withdrawn.
const WITHDRAWAL_CHECK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The longest line that is read. No typed reply needs more.
const MAX_LINE_BYTES: usize = 4 << 10;

/// What a person typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedReply {
    Yes,
    AllOfTool,
    No(Option<String>),
    Quit,
    Unknown,
}

impl TypedReply {
    pub(super) fn parse(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let reason = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "n" | "no" => Self::No((!reason.is_empty()).then(|| reason.to_owned())),
            _ if !reason.is_empty() => Self::Unknown,
            "y" | "yes" => Self::Yes,
            "a" | "all" => Self::AllOfTool,
            "q" | "quit" => Self::Quit,
            _ => Self::Unknown,
        }
    }
}

/// Discards what was typed before the question was there: it can't be the reply.
pub(super) fn discard_typed_ahead(terminal: &File) {
    let _ = tcflush(terminal, QueueSelector::IFlush);
}

/// Reads a line. `None` if the terminal was closed or the question was withdrawn.
///
/// # Errors
/// The terminal can't be read.
pub(super) fn read_line(terminal: &File, is_withdrawn: &AtomicBool) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    while !is_withdrawn.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(terminal, PollFlags::IN)];
        if poll(&mut ready, Some(&WITHDRAWAL_CHECK))? == 0 {
            continue;
        }
        let mut byte = [0];
        if (&*terminal).read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            b'\n' => return Ok(Some(String::from_utf8_lossy(&line).into_owned())),
            byte if line.len() < MAX_LINE_BYTES => line.push(byte),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only an unambiguous reply counts. After any other, the question is repeated.
    #[test]
    fn only_clear_words_are_replies() {
        let no = |reason: Option<&str>| TypedReply::No(reason.map(str::to_owned));
        for (line, expected) in [
            ("y", TypedReply::Yes),
            (" YES ", TypedReply::Yes),
            ("a", TypedReply::AllOfTool),
            ("q", TypedReply::Quit),
            ("n", no(None)),
            ("no too much money", no(Some("too much money"))),
            ("", TypedReply::Unknown),
            ("yes, but", TypedReply::Unknown),
            ("y n", TypedReply::Unknown),
            ("yup", TypedReply::Unknown),
        ] {
            assert_eq!(TypedReply::parse(line), expected, "{line:?}");
        }
    }
}
