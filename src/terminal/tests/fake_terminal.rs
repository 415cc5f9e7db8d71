//! A terminal for tests.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use indicatif::TermLike;

const COLUMNS: usize = 60;

/// A terminal of 60 columns that keeps its visible text, and everything ever written to it.
#[derive(Clone, Debug, Default)]
pub struct FakeTerminal(Arc<Mutex<ScreenBuffer>>);

#[derive(Debug, Default)]
struct ScreenBuffer {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    in_escape: bool,
    written: String,
}

impl FakeTerminal {
    /// Returns the text that is visible now.
    pub fn visible_text(&self) -> String {
        let lines = self.lock().lines.clone();
        let lines = lines.iter().map(|line| line.iter().collect::<String>());
        let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    pub fn written(&self) -> String {
        self.lock().written.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ScreenBuffer> {
        self.0.lock().unwrap()
    }
}

impl ScreenBuffer {
    fn put_char(&mut self, c: char) {
        match c {
            '\n' => (self.row, self.column) = (self.row + 1, 0),
            '\r' => self.column = 0,
            '\x1b' => self.in_escape = true,
            c if self.in_escape => self.in_escape = c != 'm',
            c => {
                if self.column == COLUMNS {
                    (self.row, self.column) = (self.row + 1, 0);
                }
                *self.cell() = c;
                self.column += 1;
            }
        }
    }

    fn cell(&mut self) -> &mut char {
        let rows = self.lines.len().max(self.row + 1);
        self.lines.resize(rows, vec![' '; COLUMNS]);
        &mut self.lines[self.row][self.column]
    }
}

impl TermLike for FakeTerminal {
    fn width(&self) -> u16 {
        60
    }
    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        self.lock().row -= rows;
        Ok(())
    }
    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.lock().row += rows;
        Ok(())
    }
    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.lock().column += columns;
        Ok(())
    }
    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        let mut picture = self.lock();
        picture.column = picture.column.saturating_sub(columns);
        Ok(())
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(&format!("{text}\n"))
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        let mut picture = self.lock();
        picture.written.push_str(text);
        text.chars().for_each(|c| picture.put_char(c));
        Ok(())
    }
    fn clear_line(&self) -> io::Result<()> {
        let mut picture = self.lock();
        let row = picture.row;
        if let Some(line) = picture.lines.get_mut(row) {
            line.fill(' ');
        }
        picture.column = 0;
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
