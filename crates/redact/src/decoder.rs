//! A text → what it says, a byte at a time, each with the place where it is said.

use std::ops::Range;

use crate::escapes::{Reading, escape, escapes, reference};

/// The most bytes that are read as one. A pair of `\ud83d\ude00`, each with sixteen backslashes, has 42.
const MOST: usize = 48;

/// A byte that is said, and where, in bytes of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) byte: u8,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Readings one after another: escapes of JSON, those of JSON in it, however many more there are, and what URLs and HTML
/// write. The first two are exact, since of JSON in JSON every character may be escaped, a backslash by `\u005c`, too.
#[derive(Debug)]
pub(crate) struct View {
    stages: [Stage; Self::STAGES],
}

impl View {
    /// How many readings there are.
    pub(crate) const STAGES: usize = 4;

    pub(crate) fn new() -> Self {
        Self {
            stages: [
                Stage::new(b"\\", escape),
                Stage::new(b"\\", escape),
                Stage::new(b"\\", escapes),
                Stage::new(b"%&", reference),
            ],
        }
    }

    /// Takes the next byte of the text, and tells what is certain of what it says.
    pub(crate) fn push(&mut self, byte: Said, tell: &mut dyn FnMut(Said)) {
        push(&mut self.stages, byte, tell);
    }

    /// Tells the rest: nothing follows.
    pub(crate) fn finish(&mut self, tell: &mut dyn FnMut(Said)) {
        let mut stages = self.stages.as_mut_slice();
        while let Some((stage, inner)) = stages.split_first_mut() {
            stage.settle(true, &mut |said| push(inner, said, tell));
            stages = inner;
        }
    }

    /// Where that begins of which it is not known what it says.
    pub(crate) fn pending(&self) -> Option<usize> {
        self.stages.iter().rev().find_map(Stage::pending)
    }
}

fn push(stages: &mut [Stage], byte: Said, tell: &mut dyn FnMut(Said)) {
    match stages.split_first_mut() {
        Some((stage, inner)) => stage.push(byte, &mut |said| push(inner, said, tell)),
        None => tell(byte),
    }
}

/// What `text` says to those of the readings that are in `stages`.
pub(crate) fn said(text: &str, stages: Range<usize>) -> Vec<u8> {
    let mut view = View::new();
    for (index, stage) in view.stages.iter_mut().enumerate() {
        if !stages.contains(&index) {
            stage.begins = b"";
        }
    }
    let mut said = Vec::new();
    let mut tell = |byte: Said| said.push(byte.byte);
    for (start, byte) in text.bytes().enumerate() {
        let end = start + 1;
        view.push(Said { byte, start, end }, &mut tell);
    }
    view.finish(&mut tell);
    said
}

/// One reading of a text.
#[derive(Debug)]
struct Stage {
    /// What has a meaning other than itself begins with one of these.
    begins: &'static [u8],
    read: fn(&[u8], bool) -> Reading,
    /// What can't be told yet.
    bytes: [u8; MOST],
    /// Where each of it begins and ends.
    places: [(usize, usize); MOST],
    len: usize,
}

impl Stage {
    fn new(begins: &'static [u8], read: fn(&[u8], bool) -> Reading) -> Self {
        Self {
            begins,
            read,
            bytes: [0; MOST],
            places: [(0, 0); MOST],
            len: 0,
        }
    }

    fn pending(&self) -> Option<usize> {
        self.places[..self.len].first().map(|(start, _)| *start)
    }

    fn push(&mut self, said: Said, tell: &mut dyn FnMut(Said)) {
        if self.len == 0 && !self.begins.contains(&said.byte) {
            return tell(said);
        }
        self.bytes[self.len] = said.byte;
        self.places[self.len] = (said.start, said.end);
        self.len += 1;
        self.settle(self.len == MOST, tell);
    }

    /// Tells what can be told; `is_all` says that nothing follows.
    fn settle(&mut self, is_all: bool, tell: &mut dyn FnMut(Said)) {
        let mut done = 0;
        while done < self.len {
            let bytes = &self.bytes[done..self.len];
            let (used, said, len) = match (self.read)(bytes, is_all) {
                _ if !self.begins.contains(&bytes[0]) => (1, [bytes[0]; 4], 1),
                Reading::More => break,
                Reading::Says(used, said, len) => (used, said, len),
            };
            let ((start, _), (_, end)) = (self.places[done], self.places[done + used - 1]);
            for (byte, start) in said[..len].iter().zip(start..) {
                tell(Said {
                    byte: *byte,
                    start,
                    end,
                });
            }
            done += used;
        }
        self.bytes.copy_within(done..self.len, 0);
        self.places.copy_within(done..self.len, 0);
        self.len -= done;
    }
}
