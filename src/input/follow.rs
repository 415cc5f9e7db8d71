//! Lines that are answered as they arrive.

use std::collections::VecDeque;
use std::io;

use crate::input::chunk_reader::Feed;
use crate::output::{Exit, Failure};
use toolq_core::transcript::{Follow, Recording};

/// What each line asks, as it arrives.
pub struct Lines {
    feed: Feed,
    follow: Follow,
    /// What was read already, and comes again.
    ahead: VecDeque<Recording>,
    ended: bool,
    lost: Option<io::Error>,
    /// A line was handed out.
    begun: bool,
    /// Turns of the lines that asked for nothing before any did.
    passed: usize,
}

impl Lines {
    /// Nothing is read yet.
    pub fn new(feed: Feed, follow: Follow) -> Self {
        Self {
            feed,
            follow,
            ahead: VecDeque::new(),
            ended: false,
            lost: None,
            begun: false,
            passed: 0,
        }
    }

    /// Waits for the next line; none at the end.
    pub fn wait(&mut self) -> Result<Option<Recording>, Failure> {
        loop {
            if let Some(line) = self.ready()? {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            let read = self.feed.wait();
            self.push(read);
        }
    }

    /// Counts the turns of `line`, which asks for nothing.
    pub fn pass(&mut self, line: &Recording) {
        self.passed += line.len();
    }

    /// How many turns were counted.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// Hands `line` out again, as the next.
    pub fn put_back(&mut self, line: Recording) {
        self.ahead.push_front(line);
    }

    /// Lets the lines arrive by themselves.
    pub fn detach(&mut self) -> io::Result<()> {
        self.feed.detach()
    }

    /// The next line, as soon as it is there; none at the end. Needs [`detach`](Self::detach).
    pub async fn next(&mut self) -> Result<Option<Recording>, Failure> {
        loop {
            if let Some(line) = self.ready()? {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            let read = self.feed.next().await;
            self.push(read);
        }
    }

    /// The next of the lines that are there. What can't be read is an end midway, unless it is the first.
    fn ready(&mut self) -> Result<Option<Recording>, Failure> {
        if let Some(line) = self.ahead.pop_front() {
            return Ok(Some(line));
        }
        let failure = match (self.follow.next(), self.lost.take(), self.ended) {
            (Some(Ok(line)), lost, _) => {
                (self.begun, self.lost) = (true, lost);
                return Ok(Some(line));
            }
            (Some(Err(error)), ..) => error.into(),
            (None, Some(lost), _) => Failure::usage(format!("the input can't be read on: {lost}")),
            (None, None, true) if !self.begun => Failure::usage("the input is empty"),
            (None, None, _) => return Ok(None),
        };
        let exit = if self.begun {
            Exit::Stopped
        } else {
            failure.exit
        };
        Err(Failure { exit, ..failure })
    }

    fn push(&mut self, read: io::Result<Vec<u8>>) {
        match read {
            Ok(bytes) if !bytes.is_empty() => return self.follow.push(&bytes),
            Ok(_) => self.follow.end(),
            Err(error) => self.lost = Some(error),
        }
        self.ended = true;
    }
}
