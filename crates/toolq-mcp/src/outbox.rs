//! Messages that are to be sent, each on a line of its own.

use std::mem;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::RequestId;
use crate::rpc_error::RpcError;

/// Room for a message of common length, so that its buffer isn't moved each time it grows.
const MESSAGE_CAPACITY: usize = 512;
/// How much memory is kept for later messages.
const MAX_KEPT_CAPACITY: usize = 64 << 10;

/// Messages that are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
}

#[derive(Serialize)]
struct OutgoingRequest<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct OutgoingNotification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
struct OutgoingResult<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

#[derive(Serialize)]
struct OutgoingError<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    error: RpcError,
}

/// `{}`.
#[derive(Debug, Serialize)]
pub(crate) struct EmptyObject {}

impl Outbox {
    /// Takes what is to be sent.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        mem::take(&mut self.bytes)
    }

    /// Appends what is to be sent to `output`, and keeps the buffer for later messages unless it is large.
    pub(crate) fn move_to(&mut self, output: &mut Vec<u8>) {
        output.extend_from_slice(&self.bytes);
        self.bytes.clear();
        self.bytes.shrink_to(MAX_KEPT_CAPACITY);
    }

    /// Sends a request.
    pub(crate) fn request(&mut self, id: u64, method: &str, params: impl Serialize) {
        self.push(&OutgoingRequest {
            jsonrpc: "2.0",
            id,
            method,
            params,
        });
    }

    /// Sends a notification.
    pub(crate) fn notification(&mut self, method: &'static str, params: Option<impl Serialize>) {
        self.push(&OutgoingNotification {
            jsonrpc: "2.0",
            method,
            params,
        });
    }

    /// Answers the request `id` with a result.
    pub(crate) fn result(&mut self, id: &RequestId, result: impl Serialize) {
        self.push(&OutgoingResult {
            jsonrpc: "2.0",
            id: id.as_raw(),
            result,
        });
    }

    /// Answers the request `id` with an error. A message whose id can't be read gets an error without one.
    pub(crate) fn error(&mut self, id: Option<&RequestId>, error: RpcError) {
        self.push(&OutgoingError {
            jsonrpc: "2.0",
            id: id.map(RequestId::as_raw),
            error,
        });
    }

    fn push(&mut self, message: &impl Serialize) {
        let start = self.bytes.len();
        self.bytes.reserve(MESSAGE_CAPACITY);
        // Nothing that is sent can fail to serialize: all keys are text.
        if serde_json::to_writer(&mut self.bytes, message).is_err() {
            self.bytes.truncate(start);
            return;
        }
        // Raw JSON may have line breaks between its values, and a message must not. A line break inside a string is
        // always escaped.
        for byte in &mut self.bytes[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        self.bytes.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_appended_in_order_and_a_large_buffer_is_not_kept() {
        let (mut outbox, mut expected) = (Outbox::default(), Outbox::default());
        let mut output = Vec::new();
        for (id, text) in [(1, "a".to_owned()), (2, "b".repeat(100_000))] {
            outbox.request(id, "echo", &text);
            expected.request(id, "echo", &text);
            outbox.move_to(&mut output);
        }
        assert_eq!(output, expected.take());
        assert!(outbox.bytes.is_empty());
        assert!(outbox.bytes.capacity() <= MAX_KEPT_CAPACITY);
        let before = output.len();
        outbox.move_to(&mut output);
        assert_eq!(output.len(), before);
    }
}
