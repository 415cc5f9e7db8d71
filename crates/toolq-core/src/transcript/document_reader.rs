//! Reads documents into turns, detecting the dialect of each unless one is given.
//!
//! A session log contains kinds of lines that only its own program knows, even before its first message. So an
//! unrecognized line isn't an error yet: it's skipped if a later line shows that the input is such a log. In any other
//! input, every document must be recognized.

use crate::json::{JsonText, ObjectIter, ParsedObject};
use crate::transcript::document_frames::{DocumentError, DocumentVisitor, InputDocument};
use crate::transcript::formats::{format_of, recognize};
use crate::transcript::index_builder::IndexBuilder;
use crate::transcript::input_source::OffsetError;
use crate::transcript::raw_call::unrecognized_document;
use crate::types::Dialect;

/// The result of the documents read so far.
pub(crate) struct DocumentReader {
    pub index_builder: IndexBuilder,
    /// Number of documents, including skipped ones.
    pub document_count: usize,
    /// The dialect of the session log, once the input is known to be one.
    pub log_dialect: Option<Dialect>,
    /// The dialect of the last document that was read.
    pub last_dialect: Option<Dialect>,
    given_dialect: Option<Dialect>,
    /// The input is one line of a larger one, and these lines are answered one by one.
    is_line: bool,
    /// The dialect of the session log that the lines before this one showed. Lines of no known form belong to it.
    earlier_log_dialect: Option<Dialect>,
    /// The error about the first document that wasn't recognized.
    pub(super) unrecognized: Option<OffsetError>,
    /// What is missing at the end of a log.
    pub nul_end: Option<OffsetError>,
    /// The error about the first document of another dialect than the log that was given. A log may have such lines, too.
    foreign: Option<OffsetError>,
}

impl DocumentReader {
    /// Creates a reader. With `given_dialect`, every document is read as that dialect.
    pub fn new(given_dialect: Option<Dialect>) -> Self {
        Self {
            index_builder: IndexBuilder::default(),
            document_count: 0,
            log_dialect: given_dialect.filter(|dialect| dialect.is_log()),
            last_dialect: None,
            given_dialect,
            is_line: false,
            earlier_log_dialect: None,
            unrecognized: None,
            nul_end: None,
            foreign: None,
        }
    }

    /// Creates a reader of one line that is answered by itself. So a line of another dialect than `given_dialect` is an
    /// error even in a log: its calls would get no results.
    pub fn for_line(given_dialect: Option<Dialect>, earlier_log_dialect: Option<Dialect>) -> Self {
        Self {
            is_line: true,
            earlier_log_dialect,
            ..Self::new(given_dialect)
        }
    }

    /// Returns why the input isn't a recording, if it isn't.
    pub fn take_error(&mut self) -> Option<OffsetError> {
        if self.unrecognized.is_some() {
            self.unrecognized.take()
        } else if self.document_count == 0 {
            let expected = "name a file that holds a model response, or pipe one in";
            Some(OffsetError::at(0, "the input is empty").hint(expected))
        } else if self.index_builder.is_empty() && self.foreign.is_some() {
            self.foreign.take()
        } else if self.index_builder.is_empty() {
            let expected =
                "expected an assistant message: user and system messages don't call tools";
            Some(OffsetError::at(0, "the input has no model response").hint(expected))
        } else {
            None
        }
    }

    /// Returns the dialect to read a document in, or `None` to skip it for now.
    fn dialect<'a>(
        &mut self,
        document: &InputDocument<'a>,
    ) -> Result<Option<Dialect>, DocumentError<'a>> {
        if let Some(known) = self
            .given_dialect
            .or(self.log_dialect)
            .or_else(|| detect_dialect(document))
            .or(self.earlier_log_dialect)
        {
            return Ok(Some(known));
        }
        if self.last_dialect.is_some() || !may_be_log_line(document) {
            return Err(unrecognized_document(document));
        }
        let error = || document.origin.locate(unrecognized_document(document));
        self.unrecognized.get_or_insert_with(error);
        Ok(None)
    }

    /// Judges a document without calls in the given dialect, which may have some in its own.
    fn check_given_dialect<'a>(
        &mut self,
        document: &InputDocument<'a>,
        given: Dialect,
        result: Result<(), DocumentError<'a>>,
    ) -> Result<(), DocumentError<'a>> {
        let may_be_foreign = given.is_log() && !self.is_line;
        if may_be_foreign && (self.foreign.is_some() || !self.index_builder.is_empty()) {
            return result;
        }
        match (mismatch_error(document, given), result) {
            (Some(mismatch), result) if may_be_foreign => {
                self.foreign = Some(document.origin.locate(mismatch));
                result
            }
            (Some(mismatch), _) => Err(mismatch),
            // The next lines may show that it is the beginning of a log.
            (None, Err(error)) if self.index_builder.is_empty() && may_be_log_line(document) => {
                let error = || document.origin.locate(error);
                self.unrecognized.get_or_insert_with(error);
                Ok(())
            }
            (None, result) => result,
        }
    }
}

impl DocumentVisitor for DocumentReader {
    fn visit_document<'a>(
        &mut self,
        document: &InputDocument<'a>,
    ) -> Result<(), DocumentError<'a>> {
        self.document_count += 1;
        let Some(dialect) = self.dialect(document)? else {
            return Ok(());
        };
        if dialect.is_log() && self.last_dialect.is_none() {
            self.log_dialect = Some(dialect);
            self.unrecognized = None;
        }
        self.last_dialect = Some(dialect);
        self.index_builder.begin_document(document.origin);
        let calls_before = self.index_builder.call_count();
        let result = format_of(dialect).read_document(document, &mut self.index_builder);
        match self.given_dialect {
            Some(given) if self.index_builder.call_count() == calls_before => {
                self.check_given_dialect(document, given, result)
            }
            _ => result,
        }
    }

    fn allows_nul_end(&self) -> bool {
        self.last_dialect.is_some_and(Dialect::is_log)
    }

    fn note_nul_end(&mut self, offset: u64) {
        self.nul_end = Some(OffsetError::at(
            offset,
            "the file ends in NUL bytes, as after a power loss: what was written last is missing",
        ));
    }

    /// A run that was killed may leave half a record at the end of its log. Nothing depends on that record.
    fn allows_torn_end(&self) -> bool {
        self.last_dialect == Some(Dialect::Toolq)
    }
}

// Detects the dialect of a document by its form alone.

/// What the form of a document says about its dialect.
enum Form {
    /// Only this dialect has it.
    Of(Dialect),
    /// A conversation that has only text so far, which looks the same in several dialects.
    OnlyText,
    Unknown,
}

/// Returns the dialect of a document, or `None` if it has no known form. A conversation that has only text so far
/// counts as Anthropic's; it has no calls, so the choice doesn't matter.
fn detect_dialect(document: &InputDocument) -> Option<Dialect> {
    match detect_form(document) {
        Form::Of(dialect) => Some(dialect),
        Form::OnlyText => Some(Dialect::Anthropic),
        Form::Unknown => None,
    }
}

fn detect_form(document: &InputDocument) -> Form {
    match (&document.object, document.json.objects()) {
        (Some(whole), _) => detect_object(whole),
        (None, Some(items)) => detect_list(items),
        (None, None) => Form::Unknown,
    }
}

fn detect_object(object: &ParsedObject) -> Form {
    if let Some(dialect) = recognize(object) {
        return Form::Of(dialect);
    }
    match object.get("messages").and_then(JsonText::objects) {
        _ if object.has_value("role") => Form::OnlyText,
        Some(messages) => detect_conversation(messages),
        None => Form::Unknown,
    }
}

fn detect_list(mut items: ObjectIter) -> Form {
    match items.next() {
        None => Form::OnlyText,
        Some(Ok(first)) if first.has_value("role") => {
            detect_conversation([Ok(first)].into_iter().chain(items))
        }
        Some(Ok(first)) => recognize(&first).map_or(Form::Unknown, Form::Of),
        Some(Err(_)) => Form::Unknown,
    }
}

/// Returns the dialect of the first message of the model that shows one, or else of any: only the model's messages have calls, and
/// others may have been put in from elsewhere.
fn detect_conversation<'a>(
    messages: impl Iterator<Item = Result<ParsedObject<'a>, JsonText<'a>>>,
) -> Form {
    let mut shown = Form::OnlyText;
    for message in messages.flatten() {
        let is_model = matches!(
            message.get_text("role").as_deref(),
            Some("assistant" | "model")
        );
        match recognize(&message) {
            Some(dialect) if is_model => return Form::Of(dialect),
            Some(dialect) if matches!(shown, Form::OnlyText) => shown = Form::Of(dialect),
            _ => {}
        }
    }
    shown
}

/// Returns whether an unrecognized document may be one of the other lines that session logs have.
fn may_be_log_line(document: &InputDocument) -> bool {
    let object = document.object.as_ref();
    object.is_some_and(|object| object.get_text("type").is_some() && !object.has_value("error"))
}

/// Returns the error for a document in which `given`, the dialect that the user named, finds no calls, if its form shows
/// that it is of another dialect.
fn mismatch_error<'a>(document: &InputDocument<'a>, given: Dialect) -> Option<DocumentError<'a>> {
    let Form::Of(dialect) = detect_form(document) else {
        return None;
    };
    if dialect == given {
        return None;
    }
    let message = format!("this has the form of `{dialect}`, but `--from` says `{given}`");
    let hint = format!("write `--from {dialect}`, or leave it out: toolq detects the format");
    Some(DocumentError::new(document.json, message).with_hint(hint))
}
