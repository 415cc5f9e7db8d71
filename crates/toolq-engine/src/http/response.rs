//! Reads a response, and determines the outcome of the call.

use std::time::{Duration, SystemTime};

use reqwest::Response;

use crate::attempt::{AttemptResult, CancelPoint};
use crate::http::error;
use crate::http::error::HttpError;
use crate::http::response_headers::{content_encoding, parse_retry_after};
use crate::http::send_guard::SendGuard;
use crate::output::OutputCollector;
use redact::Mask;
use toolq_core::text::format_bytes;
use toolq_core::types::{
    CallEnding, CallOutput, DoubtCause, Effect, HttpBacking, Outcome, TransportError,
    TransportPhase,
};

/// A response that is still arriving.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    /// `None` until it was received.
    pub(crate) head: Option<ResponseHead>,
    /// The body, as far as it was received.
    pub(crate) body: OutputCollector,
}

/// The status and the relevant headers of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    status: u16,
    is_success: bool,
    /// The content encoding of the body, if any. No request accepts one.
    encoding: Option<String>,
    /// The minimum wait before the next request that the server requested.
    retry_after: Option<Duration>,
}

impl PendingResponse {
    /// Returns the result of an attempt that was canceled.
    pub(crate) fn into_canceled(self, send_guard: &SendGuard, effect: Effect) -> AttemptResult {
        let cancel_point = if send_guard.try_cancel() {
            CancelPoint::BeforeStart
        } else if effect == Effect::Write {
            CancelPoint::Unknown
        } else {
            CancelPoint::WhileRunning
        };
        AttemptResult::Canceled {
            partial_output: self.body.into_output(String::new()),
            cancel_point,
        }
    }

    /// Returns the result of an attempt after `read`. A failing status counts even if its body couldn't be read.
    pub(crate) fn into_attempt_result(
        self,
        read: Result<(), HttpError>,
        effect: Effect,
        mask: &Mask,
    ) -> AttemptResult {
        let retry_after = self.head.as_ref().and_then(|head| head.retry_after);
        let outcome = match (self.head, read) {
            (Some(head), read) if read.is_ok() || !head.is_success => {
                head.outcome_with_body(self.body)
            }
            (Some(head), Err(HttpError::EncodedBody(encoding))) => {
                head.encoded_body_outcome(&encoding)
            }
            (_, Err(HttpError::Unsent(outcome))) => outcome,
            (_, Err(HttpError::Transport(transport))) => {
                transport_outcome(transport, self.body, effect, mask)
            }
            (_, Err(HttpError::TimedOut(limit))) => timeout_outcome(limit, self.body, effect),
            (_, Ok(()) | Err(HttpError::EncodedBody(_))) => {
                Outcome::InternalError("a response body was read before its head".to_owned())
            }
        };
        AttemptResult::Finished {
            outcome,
            retry_after,
        }
    }
}

impl ResponseHead {
    pub(crate) fn from_response(response: &Response, backing: &HttpBacking) -> Self {
        let status = response.status().as_u16();
        let is_success = backing
            .success_status
            .iter()
            .any(|range| range.contains(&status));
        Self {
            status,
            is_success,
            encoding: content_encoding(response.headers()),
            retry_after: parse_retry_after(response.headers(), SystemTime::now()),
        }
    }

    /// Returns the outcome of the call for this head and body.
    fn outcome_with_body(&self, body: OutputCollector) -> Outcome {
        let ending = CallEnding::HttpStatus(self.status);
        if self.is_success {
            return body.into_outcome(ending, String::new);
        }
        Outcome::Failed {
            output: body.into_output(String::new()),
            ending,
        }
    }

    fn encoded_body_outcome(&self, encoding: &str) -> Outcome {
        Outcome::BadOutput {
            problem: format!("its body is encoded ({encoding}), but no encoding was requested"),
            output: CallOutput::default(),
            ending: CallEnding::HttpStatus(self.status),
        }
    }
}

/// Returns the outcome of a failed connection. A `write` request that was sent may have had its effect, so it is in
/// doubt.
fn transport_outcome(
    transport: TransportError,
    body: OutputCollector,
    effect: Effect,
    mask: &Mask,
) -> Outcome {
    let detail = mask.apply(&transport.detail).into_owned();
    let transport = TransportError {
        detail,
        ..transport
    };
    let was_sent = matches!(
        transport.phase,
        TransportPhase::Response | TransportPhase::Body
    );
    if was_sent && effect == Effect::Write {
        in_doubt_outcome(DoubtCause::ConnectionLost(Box::new(transport)), body)
    } else {
        Outcome::TransportFailed(transport)
    }
}

fn timeout_outcome(limit: Duration, body: OutputCollector, effect: Effect) -> Outcome {
    if effect == Effect::Write {
        return in_doubt_outcome(DoubtCause::TimedOut(limit), body);
    }
    Outcome::TimedOut {
        no_calls_started: false,
        limit,
        output: body.into_output(String::new()),
    }
}

fn in_doubt_outcome(cause: DoubtCause, body: OutputCollector) -> Outcome {
    Outcome::InDoubt {
        cause,
        output: body.into_output(String::new()),
    }
}

/// Reads a body piece by piece, up to the number of bytes that `output` can use.
///
/// # Errors
/// Why the body wasn't read to its end. An encoded body isn't read at all: decoding one would allow a server to expand
/// a few bytes into many (a decompression bomb).
pub(crate) async fn read_body(
    response: &mut Response,
    head: &ResponseHead,
    output: &mut OutputCollector,
    origin: &str,
) -> Result<(), HttpError> {
    let max_bytes = output.max_useful_bytes();
    let too_large = || {
        let detail = format!("the body has more than {}", format_bytes(max_bytes));
        error::transport_error(TransportPhase::TooLarge, origin, detail)
    };
    let declared_length = response.content_length();
    if head.encoding.is_none() && declared_length.is_some_and(|length| length > max_bytes) {
        return Err(too_large());
    }
    let body_error =
        |error| error::transport_error(TransportPhase::Body, origin, error::root_cause(&error));
    let mut total = 0;
    while let Some(piece) = response.chunk().await.map_err(body_error)? {
        if let Some(encoding) = &head.encoding {
            return Err(HttpError::EncodedBody(encoding.clone()));
        }
        total += piece.len() as u64;
        if total > max_bytes {
            return Err(too_large());
        }
        output.push(&piece);
    }
    Ok(())
}
