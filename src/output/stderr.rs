//! Writes messages to stderr: labeled, masked, escaped, and colored where wanted.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use crate::output::color_choice::{ColorChoice, ColorPolicy, is_dumb_terminal};
use crate::output::stderr_stream::StderrStream;
use crate::terminal::kind_style;
use redact::Mask;
use toolq_core::exit::{CommandError, Exit};
use toolq_core::os::Environment;
use toolq_core::text::{escape, paint, wrap_words};
use toolq_core::types::OutcomeKind;

/// Columns and lines if stderr isn't a terminal.
const FALLBACK_SIZE: (u16, u16) = (100, 40);

/// The mask for secrets, set once tools.yaml is read. It is global because the panic hook needs it.
static MASK: OnceLock<Mask> = OnceLock::new();

/// Writes to stderr as the flags and the environment say.
#[derive(Debug, Clone)]
pub struct StderrWriter {
    /// `-q`: print only errors.
    pub quiet: bool,
    /// The locale's characters go beyond ASCII.
    pub is_unicode: bool,
    /// The terminal can't move its cursor.
    is_dumb: bool,
    color_policy: ColorPolicy,
}

impl StderrWriter {
    /// Colors as the flag and the environment say ([`ColorPolicy::new`]), and by default only what a terminal shows.
    pub fn new(color: ColorChoice, quiet: bool, environment: &Environment) -> Self {
        Self {
            quiet,
            is_unicode: is_unicode_locale(environment),
            is_dumb: is_dumb_terminal(environment),
            color_policy: ColorPolicy::new(color, environment),
        }
    }

    /// Returns whether stderr is a terminal.
    pub fn is_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Returns whether stderr is a terminal whose lines can be drawn again.
    pub fn can_redraw(&self) -> bool {
        Self::is_terminal() && !self.is_dumb
    }

    /// Returns the width in columns, with a default if stderr isn't a terminal.
    pub fn width() -> usize {
        usize::from(Self::size().0)
    }

    /// Returns columns and lines, with defaults if stderr isn't a terminal.
    pub fn size() -> (u16, u16) {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map_or(FALLBACK_SIZE, |(width, height)| (width.0, height.0))
    }

    /// Returns whether to color stderr.
    pub fn is_colored(&self) -> bool {
        self.allows_color(Self::is_terminal)
    }

    /// Returns whether to color stdout.
    pub fn is_stdout_colored(&self) -> bool {
        self.allows_color(crate::output::stdout::is_terminal)
    }

    /// Returns a text of toolq with symbols that the locale has.
    pub(crate) fn own_symbols(&self, text: String) -> String {
        if self.is_unicode {
            text
        } else {
            with_ascii_symbols(&text)
        }
    }

    fn allows_color(&self, is_terminal: fn() -> bool) -> bool {
        match self.color_policy {
            ColorPolicy::Everywhere => true,
            ColorPolicy::OnTerminals => is_terminal(),
            ColorPolicy::Nowhere => false,
        }
    }

    /// Writes text without masking or a label. Errors are ignored: there is no place left to report them.
    pub fn write_text(text: &str) {
        let _ = StderrStream.write_all(text.as_bytes());
    }

    /// Prints `warning: …`, unless quiet.
    pub fn print_warning(&self, message: &str) {
        if !self.quiet {
            self.print_labeled("warning", "33;1", message);
        }
    }

    /// Prints `note: …`, unless quiet.
    pub fn print_note(&self, message: &str) {
        if !self.quiet {
            self.print_labeled("note", "36;1", message);
        }
    }

    /// Prints `note: …` even if quiet: what a flag asked for, which nothing else says.
    pub fn print_requested_note(&self, message: &str) {
        self.print_labeled("note", "36;1", message);
    }

    /// Prints `failed: …`, `rejected: …` or the like about a call, unless quiet.
    pub fn print_failure(&self, kind: OutcomeKind, message: &str) {
        if !self.quiet {
            let style = format!("{};1", kind_style(kind));
            self.print_labeled(kind.label(), &style, message);
        }
    }

    /// Prints an error with its hint and returns its exit.
    pub fn print_error(&self, failure: &CommandError) -> Exit {
        if !failure.message.is_empty() {
            self.print_labeled("error", "31;1", &failure.message);
            if let Some(hint) = &failure.hint {
                self.print_labeled(" hint", "36;1", hint);
            }
        }
        failure.exit
    }

    /// Prints the details of a message, indented below it.
    pub fn print_details(text: &str) {
        let masked = MASK
            .get()
            .map_or(Cow::Borrowed(text), |mask| mask.apply(text));
        for line in masked.lines() {
            Self::write_text(&format!("  {}\n", escape(line)));
        }
    }

    /// Masks secrets in all messages from now on. The first mask set is kept.
    pub fn set_mask(mask: &Mask) {
        MASK.get_or_init(|| mask.clone());
    }

    /// Makes a message safe to print: masks secrets, and escapes control characters.
    pub(crate) fn mask_and_escape(message: &str) -> String {
        mask_and_escape(message)
    }

    /// Prints the message of a panic.
    pub fn print_panic(message: &str) {
        Self::write_text(&format!("error: {}\n", mask_and_escape(message)));
    }

    fn print_labeled(&self, label: &str, style: &str, message: &str) {
        let message = self.own_symbols(mask_and_escape(message));
        let indent = " ".repeat(label.len() + 2);
        let line = format!("{}: {message}", paint(label, style, self.is_colored()));
        Self::write_text(&if Self::is_terminal() {
            wrap_words(&line, Self::width(), &indent) + "\n"
        } else {
            line + "\n"
        });
    }
}

/// Returns whether the locale's encoding is UTF-8. Where no locale is set, as in most containers, terminals expect it.
fn is_unicode_locale(environment: &Environment) -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter();
    let mut locales = variables.filter_map(|name| environment.get(name));
    match locales.find(|locale| !locale.is_empty()) {
        None => true,
        Some(locale) if locale == "C" || locale == "POSIX" => false,
        Some(locale) => {
            let encoding = locale
                .split_once('.')
                .map_or("utf-8", |(_, encoding)| encoding);
            encoding.to_ascii_lowercase().starts_with("utf")
        }
    }
}

/// Replaces the symbols of toolq's own lines by ASCII. What models and tools wrote stays, except for these symbols.
pub(crate) fn with_ascii_symbols(text: &str) -> String {
    text.replace('…', "~").replace('›', ">").replace('→', "->")
}

/// Makes a message safe to print.
fn mask_and_escape(message: &str) -> String {
    let masked = MASK
        .get()
        .map_or(Cow::Borrowed(message), |mask| mask.apply(message));
    escape(&masked).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_on_characters() {
        let is_unicode = |variables: &[(&str, &str)]| {
            let variables = variables.iter();
            let environment = variables.map(|(name, value)| ((*name).into(), (*value).into()));
            is_unicode_locale(&environment.collect())
        };
        assert!(is_unicode(&[]));
        assert!(is_unicode(&[("LANG", "de_DE.UTF-8")]));
        assert!(is_unicode(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
        assert!(is_unicode(&[("LANG", "C"), ("LC_CTYPE", "C.UTF-8")]));
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1"] {
            assert!(!is_unicode(&[("LANG", locale)]), "{locale}");
            assert!(
                !is_unicode(&[("LC_ALL", locale), ("LANG", "C.UTF-8")]),
                "{locale}"
            );
        }
    }

    /// A panic's message may contain a part of the input.
    #[test]
    fn messages_are_masked_and_escaped() {
        StderrWriter::set_mask(&Mask::new(["c4n4ry-of-a-panic"]));
        let message = "toolq panicked at src/a.rs:1:1: `c4n4ry-of-a-panic\u{1b}[31m` has no byte 9";
        assert_eq!(
            mask_and_escape(message),
            r"toolq panicked at src/a.rs:1:1: `[masked]\x1b[31m` has no byte 9"
        );
    }
}
