//! A queue: the stream that keeps its turns.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, RawMessageErrorKind, Stream};
use async_nats::jetstream::{Context, ErrorCode};
use bytes::Bytes;

use crate::names::QueueName;
use crate::queue_error;
use toolq_core::exit::CommandError;

/// How long to wait for the server to store a message.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);

/// A queue that exists.
#[derive(Clone)]
pub(crate) struct TurnQueue {
    pub(super) name: QueueName,
    pub(super) jetstream: Context,
    pub(super) stream: Stream,
}

impl TurnQueue {
    /// Opens a queue.
    ///
    /// # Errors
    /// There is no queue of this name, or the server has no JetStream.
    pub(crate) async fn open(client: &Client, name: &QueueName) -> Result<Self, CommandError> {
        let jetstream = new_context(client);
        let stream = jetstream.get_stream(name.stream()).await;
        let stream = stream.map_err(|error| match error.kind() {
            kind if is_not_found(&kind) => CommandError::usage(format!("there is no queue {name}"))
                .with_hint("`toolq queue submit` and `toolq queue work` create a queue"),
            _ => queue_error(&format!("the queue {name} can't be opened"), error)
                .with_hint("the server needs JetStream: `nats-server -js`"),
        })?;
        Ok(Self {
            name: name.clone(),
            jetstream,
            stream,
        })
    }

    /// Opens a queue, or creates it with `replicas` copies of its stream.
    ///
    /// # Errors
    /// The server has no JetStream, or not enough peers for the copies.
    pub(crate) async fn open_or_create(
        client: &Client,
        name: &QueueName,
        replicas: usize,
    ) -> Result<Self, CommandError> {
        let jetstream = new_context(client);
        if let Ok(stream) = jetstream.get_stream(name.stream()).await {
            return Ok(Self {
                name: name.clone(),
                jetstream,
                stream,
            });
        }
        let config = Config {
            name: name.stream(),
            subjects: name.stream_subjects(),
            description: Some("a queue of toolq".to_owned()),
            num_replicas: replicas,
            allow_rollup: true,
            ..Config::default()
        };
        match jetstream.create_stream(config).await {
            Ok(_) => {}
            Err(error) if is_name_taken(error.kind()) => {}
            Err(error) => {
                let hint = if replicas > 1 {
                    "so many copies need as many servers in a cluster, each with JetStream: leave `--replicas` out for one server"
                } else {
                    "the server needs JetStream: `nats-server -js`"
                };
                let failure = queue_error(&format!("the queue {name} can't be created"), error);
                return Err(failure.with_hint(hint));
            }
        }
        Self::open(client, name).await
    }

    /// Returns whether the queue was removed since it was opened. Another one of the same name may be there. While the server
    /// doesn't answer, it counts as there.
    pub(super) async fn is_gone(&self) -> bool {
        match self.jetstream.get_stream(self.name.stream()).await {
            Ok(stream) => stream.cached_info().created != self.stream.cached_info().created,
            Err(error) => is_not_found(&error.kind()),
        }
    }

    /// Removes the queue with all that it has.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) async fn remove(&self) -> Result<(), CommandError> {
        self.remove_objects().await;
        let removed = self.jetstream.delete_stream(self.name.stream()).await;
        let removed = removed.map(drop);
        removed.map_err(|error| {
            queue_error(&format!("the queue {} can't be removed", self.name), error)
        })
    }

    /// Notifies processes that collect answers that there may be a new one. They also poll.
    pub(super) async fn tell_news(&self) {
        let client = self.jetstream.client();
        let _ = client.publish(self.name.news(), Bytes::new()).await;
    }

    /// Returns the last message of a subject.
    pub(super) async fn last_message(
        &self,
        subject: &str,
    ) -> Result<Option<StreamMessage>, String> {
        let message = self
            .stream
            .raw_message_builder()
            .last_by_subject(subject)
            .send();
        found(message.await)
    }

    /// Returns the first message of a subject, which may have wildcards, from `sequence` on.
    pub(super) async fn next_message(
        &self,
        subject: &str,
        sequence: u64,
    ) -> Result<Option<StreamMessage>, String> {
        let message = self
            .stream
            .raw_message_builder()
            .sequence(sequence)
            .next_by_subject(subject)
            .send();
        found(message.await)
    }
}

fn found(
    message: Result<StreamMessage, async_nats::jetstream::stream::RawMessageError>,
) -> Result<Option<StreamMessage>, String> {
    match message {
        Ok(message) => Ok(Some(message)),
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn new_context(client: &Client) -> Context {
    async_nats::jetstream::ContextBuilder::new()
        .timeout(ACK_TIMEOUT)
        .build(client.clone())
}

/// There is no stream of this name.
pub(super) fn is_not_found(kind: &GetStreamErrorKind) -> bool {
    match kind {
        GetStreamErrorKind::JetStream(error) => error.error_code() == ErrorCode::STREAM_NOT_FOUND,
        _ => false,
    }
}

/// Another process created the stream at the same time.
fn is_name_taken(kind: CreateStreamErrorKind) -> bool {
    match kind {
        CreateStreamErrorKind::JetStream(error) => {
            error.error_code() == ErrorCode::STREAM_NAME_EXIST
        }
        _ => false,
    }
}
