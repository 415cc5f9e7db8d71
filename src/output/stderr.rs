//! Writes messages to stderr: labeled, masked, escaped, and colored where wanted.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::mem;
use std::sync::OnceLock;

use clap::ColorChoice;
use indicatif::TermLike;
use parking_lot::Mutex;

use crate::output::stdout::{self, PIECE_BYTES};
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
    color_policy: ColorChoice,
}

impl StderrWriter {
    /// Colors as the flag and the environment say ([`color_policy`]), and by default only what a terminal shows.
    pub fn new(color: ColorChoice, quiet: bool, environment: &Environment) -> Self {
        Self {
            quiet,
            is_unicode: is_unicode_locale(environment),
            is_dumb: is_dumb_terminal(environment),
            color_policy: color_policy(color, environment),
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
        self.allows_color(stdout::is_terminal)
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
            ColorChoice::Always => true,
            ColorChoice::Auto => is_terminal(),
            ColorChoice::Never => false,
        }
    }

    /// Writes text without masking or a label. Errors are ignored: there is no place left to report them.
    pub fn write_text(text: &str) {
        let _ = StderrStream.write_all(text.as_bytes());
    }

    /// Prints `warning: …`, unless quiet.
    pub fn print_warning(&self, message: &str) {
        if !self.quiet {
            self.print_needed_warning(message);
        }
    }

    /// Prints `note: …`, unless quiet.
    pub fn print_note(&self, message: &str) {
        if !self.quiet {
            self.print_needed_note(message);
        }
    }

    /// Prints `note: …` even if quiet: what a flag asked for or a person has to do, which nothing else says.
    pub fn print_needed_note(&self, message: &str) {
        self.print_labeled("note", "36;1", message);
    }

    /// Prints `warning: …` even if quiet: what a person has to do.
    pub fn print_needed_warning(&self, message: &str) {
        self.print_labeled("warning", "33;1", message);
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
        for line in masked(text).lines() {
            Self::write_text(&format!("  {}\n", escape(line)));
        }
    }

    /// Masks secrets in all messages from now on. The first mask set is kept.
    pub fn set_mask(mask: &Mask) {
        MASK.get_or_init(|| mask.clone());
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
    escape(&masked(message)).into_owned()
}

fn masked(text: &str) -> Cow<'_, str> {
    MASK.get()
        .map_or(Cow::Borrowed(text), |mask| mask.apply(text))
}

// Stderr as a stream whose reader may be slow: a thread that waits for it doesn't keep calls from running.

/// Writes to stderr in pieces that a pipe takes at once.
pub(crate) struct StderrStream;

impl Write for StderrStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Writes without letting another thread write in between.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        for piece in bytes.chunks(PIECE_BYTES) {
            stdout::wait_until_stderr_writable(&stderr);
            stderr.write_all(piece)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// The terminal that progress bars are drawn on. Each frame is a single write.

/// Standard error as a terminal.
///
/// Between frames, the cursor is at the beginning of the last line. If it were at the end, the `^C` that a terminal
/// echoes for Ctrl-C would wrap the line, and the rows above couldn't be found again.
#[derive(Debug, Default)]
pub struct StderrTerminal {
    frame: Mutex<Frame>,
}

#[derive(Debug, Default)]
struct Frame {
    /// Output since the last flush.
    output: String,
    /// The line of the cursor has text, which nothing has moved away from.
    ends_in_text: bool,
}

impl Frame {
    /// Adds text. In a new frame it comes below the text of the last one, at whose beginning the cursor rests.
    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.output.is_empty() && self.ends_in_text {
            self.output.push('\n');
        }
        self.output.push_str(text);
        self.ends_in_text = !text.ends_with('\n');
    }

    /// Adds a movement of the cursor.
    fn push_movement(&mut self, sequence: &str) {
        self.output.push_str(sequence);
        self.ends_in_text = false;
    }
}

impl StderrTerminal {
    /// Takes the pending output and moves the cursor to the beginning of the line.
    fn take_frame(&self) -> String {
        let mut output = mem::take(&mut self.frame.lock().output);
        output.push('\r');
        output
    }

    /// Moves the cursor by `count` in an ECMA-48 direction: `A` up, `B` down, `C` right, `D` left.
    fn move_cursor(&self, count: usize, direction: char) {
        // Terminals treat 0 as 1.
        if count > 0 {
            let sequence = format!("\x1b[{count}{direction}");
            self.frame.lock().push_movement(&sequence);
        }
    }
}

impl TermLike for StderrTerminal {
    fn width(&self) -> u16 {
        StderrWriter::size().0
    }

    fn height(&self) -> u16 {
        StderrWriter::size().1
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D');
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.write_str("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut frame = self.frame.lock();
        match text {
            "\r" => frame.push_movement(text),
            _ => frame.push_text(text),
        }
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.frame.lock().push_movement("\r\x1b[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        stdout::wait_until_stderr_writable(&stderr);
        stderr.write_all(self.take_frame().as_bytes())
    }
}

/// Returns where colors are wanted, of which `Auto` means on terminals: as the flag says, then `NO_COLOR` (no-color.org),
/// `CLICOLOR_FORCE` and `CLICOLOR` (bixense.com/clicolors), then `TERM=dumb`.
pub fn color_policy(flag: ColorChoice, environment: &Environment) -> ColorChoice {
    let is_set = |name: &str| {
        environment
            .get_os(name)
            .is_some_and(|value| !value.is_empty())
    };
    let disabled = environment
        .get_os("CLICOLOR")
        .is_some_and(|value| value == "0");
    if flag != ColorChoice::Auto {
        flag
    } else if is_set("NO_COLOR") {
        ColorChoice::Never
    } else if is_set("CLICOLOR_FORCE") {
        ColorChoice::Always
    } else if disabled || is_dumb_terminal(environment) {
        ColorChoice::Never
    } else {
        ColorChoice::Auto
    }
}

/// Returns whether the terminal can neither show colors nor move its cursor.
fn is_dumb_terminal(environment: &Environment) -> bool {
    environment.get("TERM").as_deref() == Some("dumb")
}

/// Returns the style of the word for how a call ended: red for what went wrong, yellow for what is left to do.
pub(crate) fn kind_style(kind: OutcomeKind) -> &'static str {
    match kind {
        OutcomeKind::Ok => "32",
        OutcomeKind::Failed | OutcomeKind::Rejected => "31",
        OutcomeKind::Skipped | OutcomeKind::InDoubt | OutcomeKind::Unfinished => "33",
    }
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

#[cfg(test)]
mod stderr_terminal_tests {
    use super::*;

    #[test]
    fn the_cursor_rests_at_the_beginning_of_the_last_line() {
        let terminal = StderrTerminal::default();
        terminal.move_cursor_up(0).unwrap();
        terminal.move_cursor_up(2).unwrap();
        terminal.clear_line().unwrap();
        terminal.write_line("row").unwrap();
        terminal.write_str("bar").unwrap();
        assert_eq!(terminal.take_frame(), "\x1b[2A\r\x1b[2Krow\nbar\r");
        assert_eq!(terminal.take_frame(), "\r");
    }
    /// A line that was printed while no row was drawn.
    #[test]
    fn what_follows_a_line_comes_below_it() {
        let terminal = StderrTerminal::default();
        terminal.write_str("failed").unwrap();
        assert_eq!(terminal.take_frame(), "failed\r");
        terminal.write_str("bar").unwrap();
        assert_eq!(terminal.take_frame(), "\nbar\r");
        terminal.clear_line().unwrap();
        assert_eq!(terminal.take_frame(), "\r\x1b[2K\r");
        terminal.write_str("end").unwrap();
        assert_eq!(terminal.take_frame(), "end\r");
    }
}

#[cfg(test)]
mod color_choice_tests {
    use super::*;

    /// clap by itself colors help on a dumb terminal if `CI` is set.
    #[test]
    fn a_dumb_terminal_has_no_colors_in_ci_either() {
        let policy = |choice, variables: &[(&str, &str)]| {
            let environment = variables
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect();
            color_policy(choice, &environment)
        };
        let in_ci = [("TERM", "dumb"), ("CI", "true")];
        assert_eq!(policy(ColorChoice::Auto, &in_ci), ColorChoice::Never);
        assert_eq!(policy(ColorChoice::Always, &in_ci), ColorChoice::Always);
        assert_eq!(policy(ColorChoice::Auto, &[]), ColorChoice::Auto);
    }
}
