//! The terminal that bars are drawn on: one write for each picture.

use std::io::{self, Write as _};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::TermLike;

use crate::output::stderr::Stderr;

/// Standard error as a terminal.
///
/// The cursor rests at the beginning of the last line. At its end, the `^C` that a terminal shows for Ctrl-C would
/// break the line, and the rows above could not be found again.
#[derive(Debug, Default)]
pub struct Terminal {
    /// What is not written yet.
    picture: Mutex<String>,
}

impl Terminal {
    fn picture(&self) -> MutexGuard<'_, String> {
        self.picture.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be written, after which the cursor rests.
    fn take(&self) -> String {
        let mut picture = mem::take(&mut *self.picture());
        picture.push('\r');
        picture
    }

    /// Moves the cursor by `count` in a direction of ECMA-48: `A` up, `B` down, `C` right, `D` left.
    fn move_cursor(&self, count: usize, direction: char) -> io::Result<()> {
        match count {
            // Nought would be taken for one.
            0 => Ok(()),
            _ => self.write_str(&format!("\x1b[{count}{direction}")),
        }
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        Stderr::size().0
    }

    fn height(&self) -> u16 {
        Stderr::size().1
    }

    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'A')
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.move_cursor(rows, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_cursor(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)?;
        self.write_str("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.picture().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().lock().write_all(self.take().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_rests_at_the_beginning_of_the_last_line() {
        let terminal = Terminal::default();
        terminal.move_cursor_up(0).unwrap();
        terminal.move_cursor_up(2).unwrap();
        terminal.clear_line().unwrap();
        terminal.write_line("row").unwrap();
        terminal.write_str("bar").unwrap();
        assert_eq!(terminal.take(), "\x1b[2A\r\x1b[2Krow\nbar\r");
        assert_eq!(terminal.take(), "\r");
    }
}
