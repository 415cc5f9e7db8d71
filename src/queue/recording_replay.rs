//! Has recordings replayed by the workers of a queue, and takes their reports in order.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::PathBuf;

use async_nats::Client;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};

use crate::output::CommandError;
use crate::queue::answer_waiter::{AnswerWaiter, WaitError};
use crate::queue::large_bodies::MAX_BODY_BYTES;
use crate::queue::log_files::{LogFiles, name_files};
use crate::queue::names::TurnName;
use crate::queue::ordered_publishing::{PublishRefusal, publish_after};
use crate::queue::queue_error;
use crate::queue::recording_message::{
    IS_RECORDING, RECORDING_VERSION, RecordingMessage, RecordingReport, RecordingSettings,
};
use crate::queue::stop::StopSignal;
use crate::queue::submitter::limit_repeats;
use crate::queue::turn_queue::TurnQueue;

/// How many recordings may be on their way to the server. Each is in memory meanwhile.
const MAX_IN_FLIGHT: usize = 16;
/// How much of a recording is read at a time to know it again.
const DIGEST_CHUNK_BYTES: usize = 64 << 10;

/// A recording that workers are to replay.
#[derive(Debug)]
pub(crate) struct SubmittedRecording {
    pub path: PathBuf,
    /// Its path, as it was given.
    pub name: String,
    /// The SHA-256 of its content.
    digest: Vec<u8>,
}

impl SubmittedRecording {
    /// Reads a recording to know it again.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn read(path: PathBuf) -> Result<Self, CommandError> {
        let name = path.display().to_string();
        let digest = fs::File::open(&path).and_then(digest_of);
        let unreadable = |error| CommandError::usage(format!("{name} can't be read: {error}"));
        let digest = digest.map_err(unreadable)?;
        Ok(Self { path, name, digest })
    }
}

fn digest_of(file: fs::File) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::with_capacity(DIGEST_CHUNK_BYTES, file);
    let mut hasher = Sha256::new();
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(hasher.finalize().to_vec());
        }
        hasher.update(chunk);
        let read = chunk.len();
        reader.consume(read);
    }
}

/// A replay over a queue. Its id depends only on what it replays, so that the same command continues where an interrupted
/// one stopped.
pub(crate) struct RecordingReplay<'a> {
    queue: &'a TurnQueue,
    client: &'a Client,
    tools_sha256: String,
    settings: RecordingSettings,
    recordings: &'a [SubmittedRecording],
    /// Replaces the digest of an input in the names of its turns.
    id: String,
}

impl<'a> RecordingReplay<'a> {
    pub(crate) fn new(
        (queue, client): (&'a TurnQueue, &'a Client),
        tools_sha256: &str,
        settings: RecordingSettings,
        recordings: &'a [SubmittedRecording],
    ) -> Self {
        let mut hasher = Sha256::new();
        for text in [tools_sha256, &settings.to_text()] {
            hasher.update(Sha256::digest(text));
        }
        for recording in recordings {
            hasher.update(Sha256::digest(&recording.name));
            hasher.update(&recording.digest);
        }
        Self {
            queue,
            client,
            tools_sha256: tools_sha256.to_owned(),
            settings,
            recordings,
            id: HEXLOWER.encode(&hasher.finalize()),
        }
    }

    /// Publishes the recordings that the queue doesn't have yet.
    ///
    /// # Errors
    /// The queue doesn't take one, or it has changed since it was read.
    pub(crate) async fn submit(&self) -> Result<(), CommandError> {
        let numbered = self.recordings.iter().enumerate();
        let submitting = numbered.map(|(number, recording)| self.submit_one(number, recording));
        let submitting = stream::iter(submitting).buffer_unordered(MAX_IN_FLIGHT);
        submitting.try_collect::<()>().await
    }

    async fn submit_one(
        &self,
        number: usize,
        recording: &SubmittedRecording,
    ) -> Result<(), CommandError> {
        let SubmittedRecording { path, name, digest } = recording;
        let bytes = fs::read(path);
        let bytes =
            bytes.map_err(|error| CommandError::usage(format!("{name} can't be read: {error}")))?;
        if Sha256::digest(&bytes)[..] != digest[..] {
            let message = format!("{name} has changed since the replay began");
            return Err(CommandError::usage(message));
        }
        let message = RecordingMessage {
            version: RECORDING_VERSION,
            tools_sha256: self.tools_sha256.clone(),
            name: name.clone(),
            settings: self.settings.clone(),
        };
        let payload = message.to_payload(&bytes);
        let published = self.publish(number, payload, LogFiles::beside(path)).await;
        published.map_err(|refusal| {
            queue_error(&format!("{name} can't be submitted"), refusal).with_hint(CONTINUE_HINT)
        })
    }

    async fn publish(
        &self,
        number: usize,
        payload: Bytes,
        mut files: LogFiles,
    ) -> Result<(), PublishRefusal> {
        let subject = self.turn(number).turn_subject(&self.queue.name);
        let files = files.take_new();
        if payload.len() > MAX_BODY_BYTES || !files.is_empty() {
            // What is stored beside it isn't stored twice.
            let known = self.queue.last_message(&subject).await;
            if known.map_err(PublishRefusal::Unconfirmed)?.is_some() {
                return Ok(());
            }
        }
        let (mut headers, payload) = self.queue.pack("turn", payload, limit_repeats()).await?;
        headers.insert(IS_RECORDING, "1");
        for file in &files {
            self.queue.store_file(file, limit_repeats()).await?;
        }
        name_files(&mut headers, &files);
        match publish_after(self.queue, &subject, (headers, payload), 0, limit_repeats()).await {
            // The queue has it from an interrupted replay.
            Ok(_) | Err(PublishRefusal::Outdated) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Passes the report of each recording on, in order, as soon as it and all before it are there. Returns `false` after a signal.
    ///
    /// # Errors
    /// The queue can't be read, or the report can't be passed on.
    pub(crate) async fn collect(
        &self,
        stop: &StopSignal,
        mut add: impl FnMut(usize, RecordingReport) -> Result<(), CommandError>,
    ) -> Result<bool, CommandError> {
        let waiter = AnswerWaiter::listen(self.queue, self.client, stop).await;
        let mut waiter = waiter.map_err(lost)?;
        for number in 0..self.recordings.len() {
            let turn = self.turn(number);
            let Some(answer) = waiter.next_answer(&turn, 0).await.map_err(interrupted)? else {
                return Ok(false);
            };
            let report = serde_json::from_slice(&answer.line).map_err(lost)?;
            add(number, report)?;
        }
        Ok(true)
    }

    /// Removes the recordings and reports from the queue, so that the next replay begins anew.
    ///
    /// # Errors
    /// The server doesn't answer.
    pub(crate) async fn remove(&self) -> Result<(), CommandError> {
        let failure = |why: String| {
            queue_error("the reports can't be removed from the queue", why).with_hint(
                "the same command would print them again; `toolq queue purge` removes the queue",
            )
        };
        for subject in self.queue.name.all_of_input(&self.id) {
            self.queue.remove_subject(&subject).await.map_err(failure)?;
        }
        Ok(())
    }

    fn turn(&self, number: usize) -> TurnName {
        TurnName {
            input: self.id.clone(),
            number,
        }
    }
}

const CONTINUE_HINT: &str =
    "run the same command again to continue; what was replayed isn't replayed again";

fn interrupted(error: WaitError) -> CommandError {
    let purged = matches!(error, WaitError::Purged);
    let error = lost(error);
    if purged {
        return error.with_hint("run the same command again to submit all recordings once more");
    }
    error
}

fn lost(why: impl std::fmt::Display) -> CommandError {
    queue_error("the reports can't be collected", why).with_hint(CONTINUE_HINT)
}
