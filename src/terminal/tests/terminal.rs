use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use indicatif::TermLike;

const WIDTH: usize = 60;

/// A terminal of 60 columns that keeps its picture, and all that was ever written on it.
#[derive(Clone, Debug, Default)]
pub struct Terminal(Arc<Mutex<Picture>>);

#[derive(Debug, Default)]
struct Picture {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    in_color: bool,
    written: String,
}

impl Terminal {
    /// What a person sees.
    pub fn picture(&self) -> String {
        let lines = self.lock().lines.clone();
        let lines = lines.iter().map(|line| line.iter().collect::<String>());
        let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n").trim_end().to_owned()
    }

    pub fn written(&self) -> String {
        self.lock().written.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Picture> {
        self.0.lock().unwrap()
    }
}

impl Picture {
    fn put(&mut self, c: char) {
        match c {
            '\n' => (self.row, self.column) = (self.row + 1, 0),
            '\r' => self.column = 0,
            '\x1b' => self.in_color = true,
            c if self.in_color => self.in_color = c != 'm',
            c => {
                if self.column == WIDTH {
                    (self.row, self.column) = (self.row + 1, 0);
                }
                *self.cell() = c;
                self.column += 1;
            }
        }
    }

    fn cell(&mut self) -> &mut char {
        let rows = self.lines.len().max(self.row + 1);
        self.lines.resize(rows, vec![' '; WIDTH]);
        &mut self.lines[self.row][self.column]
    }
}

impl TermLike for Terminal {
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
        text.chars().for_each(|c| picture.put(c));
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
