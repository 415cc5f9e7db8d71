//! What people read: diagnostics and words on stderr, coloured where that is wanted.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;

use crate::output::color::Color;
use crate::output::error::Failure;
use crate::output::exit::Exit;
use redact::Mask;
use toolq_core::os::Environment;
use toolq_core::text::{escape, paint};

/// Columns and lines of what goes to no terminal.
const SIZE: (u16, u16) = (100, 40);

/// The secrets that nobody is told, known once tools.yaml is read. A panic needs it wherever it happens.
static MASK: OnceLock<Mask> = OnceLock::new();

/// Stderr and how it is written.
#[derive(Debug)]
pub struct Stderr {
    /// `-q`: errors only.
    pub quiet: bool,
    colors: Colors,
}

/// Where colours are wanted.
#[derive(Debug, Clone, Copy)]
enum Colors {
    Everywhere,
    OnTerminals,
    Nowhere,
}

impl Stderr {
    /// Decides on colours: the flag, then `NO_COLOR` (no-color.org), then whether a person watches.
    pub fn new(color: Color, quiet: bool, environment: &Environment) -> Self {
        let forbidden = environment
            .raw("NO_COLOR")
            .is_some_and(|value| !value.is_empty());
        let dumb = environment.get("TERM").as_deref() == Some("dumb");
        let colors = match color {
            Color::Always => Colors::Everywhere,
            Color::Auto if !forbidden && !dumb => Colors::OnTerminals,
            Color::Auto | Color::Never => Colors::Nowhere,
        };
        Self { quiet, colors }
    }

    /// Whether a person watches it.
    pub fn is_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Its width in columns; 100 where nobody watches.
    pub fn width() -> usize {
        usize::from(Self::size().0)
    }

    /// Its columns and lines; 100 and 40 where nobody watches.
    pub fn size() -> (u16, u16) {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map_or(SIZE, |(width, height)| (width.0, height.0))
    }

    /// Whether it is coloured.
    pub fn color(&self) -> bool {
        self.wanted(Self::is_terminal)
    }

    /// Whether colours are wanted in what goes to stdout.
    pub fn color_of_stdout(&self) -> bool {
        self.wanted(crate::output::stdout::is_terminal)
    }

    fn wanted(&self, is_terminal: fn() -> bool) -> bool {
        match self.colors {
            Colors::Everywhere => true,
            Colors::OnTerminals => is_terminal(),
            Colors::Nowhere => false,
        }
    }

    /// Writes text that is complete by itself. Nobody can be told where this fails.
    pub fn text(text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// `warning: …`, unless quiet.
    pub fn warning(&self, message: &str) {
        if !self.quiet {
            self.labelled("warning", "33;1", message);
        }
    }

    /// `note: …`, unless quiet.
    pub fn note(&self, message: &str) {
        if !self.quiet {
            self.labelled("note", "36;1", message);
        }
    }

    /// Says what ended the command, and gives its exit.
    pub fn failure(&self, failure: &Failure) -> Exit {
        if !failure.message.is_empty() {
            self.labelled("error", "31;1", &failure.message);
            if let Some(hint) = &failure.hint {
                self.labelled(" hint", "36;1", hint);
            }
        }
        failure.exit
    }

    /// What stands below a message, each line of it on one of its own.
    pub fn details(text: &str) {
        let masked = MASK
            .get()
            .map_or(Cow::Borrowed(text), |mask| mask.text(text));
        for line in masked.lines() {
            Self::text(&format!("  {}\n", escape(line)));
        }
    }

    /// Masks secrets in all messages from now on. The first mask stays.
    pub fn mask(mask: &Mask) {
        MASK.get_or_init(|| mask.clone());
    }

    /// Says that toolq itself failed.
    pub fn panicked(message: &str) {
        Self::text(&format!("error: {}\n", shown(message)));
    }

    fn labelled(&self, label: &str, style: &str, message: &str) {
        let message = shown(message);
        let label = paint(label, style, self.color());
        Self::text(&format!("{label}: {message}\n"));
    }
}

/// A message as people may see it.
fn shown(message: &str) -> String {
    let masked = MASK
        .get()
        .map_or(Cow::Borrowed(message), |mask| mask.text(message));
    escape(&masked).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FAULTS 131: a panic's message may hold what toolq stumbled over.
    #[test]
    fn messages_are_masked_and_escaped() {
        Stderr::mask(&Mask::new(["c4n4ry-of-a-panic"]));
        let said = "toolq panicked at src/a.rs:1:1: `c4n4ry-of-a-panic\u{1b}[31m` has no byte 9";
        assert_eq!(
            shown(said),
            r"toolq panicked at src/a.rs:1:1: `[masked]\x1b[31m` has no byte 9"
        );
    }
}
