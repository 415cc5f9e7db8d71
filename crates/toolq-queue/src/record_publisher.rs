//! Publishes the records of a turn before the actions that they announce.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_nats::HeaderMap;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::large_bodies::MAX_BODY_BYTES;
use crate::ordered_publishing::{PublishRefusal, publish_after};
use crate::submitter::limit_repeats;
use crate::turn_holder::TurnHolder;
use crate::turn_log::{LogFiles, name_files};
use crate::turn_queue::TurnQueue;
use toolq_log::LogReplica;

/// The header that names the hold of the worker that published records.
pub(super) const RECORDED_BY: &str = "Toolq-Worker";
/// The header with the length of that worker's lease, in milliseconds.
pub(super) const LEASE_MS: &str = "Toolq-Lease-Ms";

/// The log of a turn in the stream. Its records are stored there before the actions that they announce.
pub(super) struct RecordPublisher {
    queue: TurnQueue,
    subject: String,
    /// The last message of the subject that this worker knows.
    last: Arc<Mutex<u64>>,
    holder: Arc<TurnHolder>,
    /// Where the log keeps what is too large for a record.
    files: LogFiles,
    /// The runtime of the connection.
    runtime: Handle,
}

impl RecordPublisher {
    /// Publishes after `last`. The first refusal is passed to the holder.
    pub(super) fn new(
        queue: TurnQueue,
        (subject, last): (String, u64),
        holder: Arc<TurnHolder>,
        files: LogFiles,
        runtime: Handle,
    ) -> Self {
        Self {
            queue,
            subject,
            last: Arc::new(Mutex::new(last)),
            holder,
            files,
            runtime,
        }
    }

    /// Blocks until the server has stored the lines, and before them the files that they name.
    fn publish(&mut self, lines: &[u8]) -> Result<(), PublishRefusal> {
        let (sender, receiver) = mpsc::channel();
        let (queue, subject) = (self.queue.clone(), self.subject.clone());
        let (holder, last) = (Arc::clone(&self.holder), Arc::clone(&self.last));
        let payload = Bytes::copy_from_slice(lines);
        let new_files = self.files.take_new();
        self.runtime.spawn(async move {
            let is_over = || holder.lease.is_over();
            let published = async {
                let mut headers = record_headers(&holder.id, holder.lease.duration());
                for file in &new_files {
                    queue.store_file(file, is_over).await?;
                }
                name_files(&mut headers, &new_files);
                let mut last = last.lock().await;
                let message = (headers, payload);
                *last = publish_after(&queue, &subject, message, *last, is_over).await?;
                Ok(())
            };
            // Only a caller that is gone doesn't receive it.
            let _ = sender.send(published.await);
        });
        let lost = |_| PublishRefusal::Unconfirmed("the connection was closed".to_owned());
        receiver.recv().map_err(lost)?
    }
}

/// Publishes records of a command that isn't a worker, after storing the files that they name.
pub(super) async fn name_and_publish(
    queue: &TurnQueue,
    subject: &str,
    (mut headers, payload): (HeaderMap, Bytes),
    new_files: &[PathBuf],
    last: u64,
) -> Result<u64, PublishRefusal> {
    for file in new_files {
        queue.store_file(file, limit_repeats()).await?;
    }
    name_files(&mut headers, new_files);
    publish_after(queue, subject, (headers, payload), last, limit_repeats()).await
}

/// Returns the headers of records: who publishes them, and how long that worker may continue without a confirmation.
fn record_headers(recorded_by: &str, lease: Duration) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(RECORDED_BY, recorded_by);
    headers.insert(LEASE_MS, lease.as_millis().to_string());
    headers
}

impl LogReplica for RecordPublisher {
    fn store(&mut self, lines: &[u8]) -> io::Result<()> {
        for message in split_lines(lines, MAX_BODY_BYTES) {
            if let Err(refusal) = self.publish(message) {
                let error = io::Error::other(refusal.to_string());
                self.holder.refuse(refusal);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Splits lines into messages of at most `max` bytes. A line is never split.
fn split_lines(lines: &[u8], max: usize) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if end > start && end - start + line.len() > max {
            messages.push(&lines[start..end]);
            start = end;
        }
        end += line.len();
    }
    if end > start {
        messages.push(&lines[start..end]);
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_whole_lines() {
        let split = |max| {
            let messages = split_lines(b"aa\nbbb\nc\n", max);
            let texts = messages
                .into_iter()
                .map(|message| str::from_utf8(message).unwrap());
            texts.collect::<Vec<_>>()
        };
        assert_eq!(split(100), ["aa\nbbb\nc\n"]);
        assert_eq!(split(7), ["aa\nbbb\n", "c\n"]);
        assert_eq!(split(1), ["aa\n", "bbb\n", "c\n"]);
        assert!(split_lines(b"", 1).is_empty());
    }
}
