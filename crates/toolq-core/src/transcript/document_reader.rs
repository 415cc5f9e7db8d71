//! Documents into turns: each is recognised, or read as what it was said to be.
//!
//! A session log has lines of kinds that only its program knows, also before its first message. So an unknown line waits
//! for the first one that tells: beside session logs nothing is passed over.

use crate::transcript::detect::{may_be_log_line, recognise, unknown};
use crate::transcript::document::Document;
use crate::transcript::document_error::Complaint;
use crate::transcript::error::Fault;
use crate::transcript::formats::dispatch;
use crate::transcript::frames::Reader;
use crate::transcript::index_builder::Turns;
use crate::types::Dialect;

/// What was read so far.
pub(crate) struct Reading {
    pub turns: Turns,
    /// Documents that were read or passed over.
    pub documents: usize,
    /// The dialect of a session log, once it is known to be one.
    pub log: Option<Dialect>,
    /// The dialect of the last document.
    pub last: Option<Dialect>,
    from: Option<Dialect>,
    /// The first document that nobody knew.
    strange: Option<Fault>,
}

impl Reading {
    /// `from` is what the input was said to be.
    pub fn new(from: Option<Dialect>) -> Self {
        Self {
            turns: Turns::default(),
            documents: 0,
            log: from.filter(|dialect| is_log(*dialect)),
            last: None,
            from,
            strange: None,
        }
    }

    /// The first document that nobody knew.
    pub fn strange(&mut self) -> Option<Fault> {
        self.strange.take()
    }

    /// Why what was read is no recording.
    pub fn missing(&mut self) -> Option<Fault> {
        if self.strange.is_some() {
            self.strange.take()
        } else if self.documents == 0 {
            let expected = "name a file with a model's answer, or pipe one in";
            Some(Fault::at(0, "the input is empty").hint(expected))
        } else if self.turns.is_empty() {
            let expected = "what the user or the system says asks for nothing; an assistant message is expected";
            Some(Fault::at(0, "the input holds no answer of a model").hint(expected))
        } else {
            None
        }
    }

    /// The dialect in which to read a document; none where it is passed over for now.
    fn dialect<'a>(&mut self, document: &Document<'a>) -> Result<Option<Dialect>, Complaint<'a>> {
        if let Some(known) = self.from.or(self.log).or_else(|| recognise(document)) {
            return Ok(Some(known));
        }
        if self.last.is_some() || !may_be_log_line(document) {
            return Err(unknown(document));
        }
        let waiting = || document.origin.fault(unknown(document));
        self.strange.get_or_insert_with(waiting);
        Ok(None)
    }
}

impl Reader for Reading {
    fn document<'a>(&mut self, document: &Document<'a>) -> Result<(), Complaint<'a>> {
        self.documents += 1;
        let Some(dialect) = self.dialect(document)? else {
            return Ok(());
        };
        if is_log(dialect) && self.last.is_none() {
            self.log = Some(dialect);
            self.strange = None;
        }
        self.last = Some(dialect);
        self.turns.begin(document.origin);
        dispatch::read(dialect, document, &mut self.turns)
    }
}

/// Whether a dialect is one of the logs whose other lines are passed over.
fn is_log(dialect: Dialect) -> bool {
    matches!(
        dialect,
        Dialect::ClaudeCode | Dialect::Codex | Dialect::Toolq
    )
}
