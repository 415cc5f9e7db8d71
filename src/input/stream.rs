//! A stream whose bytes still arrive.

use std::collections::VecDeque;
use std::io;

use crate::input::chunk_reader::Feed;
use toolq_core::transcript::{InputError, Stream, Told, turns as turns_of};
use toolq_core::types::{Call, Turn};

/// What is told of a stream, as it arrives.
pub struct Live {
    feed: Feed,
    stream: Stream,
    /// What was told already, and is told again.
    ahead: VecDeque<Told>,
    ended: bool,
}

impl Live {
    /// Nothing is read yet.
    pub fn new(feed: Feed, stream: Stream) -> Self {
        Self {
            feed,
            stream,
            ahead: VecDeque::new(),
            ended: false,
        }
    }

    /// Waits until a call begins; false where the stream has none. What was read is told all the same.
    pub fn asks(&mut self) -> bool {
        loop {
            for told in self.stream.by_ref() {
                let begun = matches!(told, Told::Begun { .. });
                self.ahead.push_back(told);
                if begun {
                    return true;
                }
            }
            if self.ended {
                return false;
            }
            let read = self.feed.wait();
            self.push(read);
        }
    }

    /// Lets the stream arrive by itself.
    pub fn detach(&mut self) -> io::Result<()> {
        self.feed.detach()
    }

    /// The next of what is told, as soon as it is known; none at the end. Needs [`detach`](Self::detach).
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            let told = self.known();
            if told.is_some() || self.ended {
                return told;
            }
            // However fast more comes: what follows from this comes first.
            tokio::task::yield_now().await;
            let read = self.feed.next().await;
            self.push(read);
        }
    }

    /// The next of what is known by now.
    pub fn known(&mut self) -> Option<Told> {
        self.ahead.pop_front().or_else(|| self.stream.next())
    }

    /// All its messages, waiting for its end.
    ///
    /// # Errors
    /// Why it can't be read to its end, beside the messages that are whole.
    pub fn whole(&mut self) -> (Vec<Turn>, Option<InputError>) {
        while !self.ended {
            let read = self.feed.wait();
            self.push(read);
        }
        turns_of(std::iter::from_fn(|| self.known()))
    }

    /// Reads on no further: the calls that had begun and are not whole.
    pub fn abandon(&mut self) -> Vec<Call> {
        self.stream.abandon()
    }

    /// How many messages have begun.
    pub fn messages(&self) -> usize {
        self.stream.messages()
    }

    fn push(&mut self, read: io::Result<Vec<u8>>) {
        match read {
            Ok(bytes) if bytes.is_empty() => {
                self.stream.end();
                self.ended = true;
            }
            Ok(bytes) => self.stream.push(&bytes),
            Err(error) => {
                self.stream.lost(&error);
                self.ended = true;
            }
        }
    }
}
