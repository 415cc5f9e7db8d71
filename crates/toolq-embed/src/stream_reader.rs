//! Decodes server-sent events as they are read.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use toolq_core::transcript::{StreamDecoder, StreamEvent};
use toolq_core::types::Call;
use toolq_engine::MessageSource;

/// How many bytes are read at a time.
const CHUNK_BYTES: usize = 16 << 10;

/// Decodes a stream as it is read.
pub(crate) struct StreamReader<R> {
    reader: R,
    decoder: StreamDecoder,
    is_at_end: bool,
}

impl<R: AsyncRead + Send + Unpin> StreamReader<R> {
    pub(crate) fn new(reader: R, max_message_bytes: u64) -> Self {
        Self {
            reader,
            decoder: StreamDecoder::new("stream".to_owned(), None, max_message_bytes),
            is_at_end: false,
        }
    }

    /// How many messages have begun.
    pub(crate) fn message_count(&self) -> usize {
        self.decoder.message_count()
    }

    async fn read_chunk(&mut self) {
        let mut chunk = vec![0; CHUNK_BYTES];
        match self.reader.read(&mut chunk).await {
            Ok(0) => {
                self.decoder.finish();
                self.is_at_end = true;
            }
            Ok(len) => self.decoder.push(&chunk[..len]),
            Err(error) => {
                self.decoder.fail_with_io_error(&error);
                self.is_at_end = true;
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> MessageSource for StreamReader<R> {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let event = self.next_ready();
            if event.is_some() || self.is_at_end {
                return event;
            }
            // A reader that is always ready must not starve the calls that are already running.
            tokio::task::yield_now().await;
            self.read_chunk().await;
        }
    }

    fn next_ready(&mut self) -> Option<StreamEvent> {
        self.decoder.next()
    }

    fn abandon(&mut self) -> Vec<Call> {
        self.decoder.abort()
    }
}
