//! Reads a response, and determines the outcome of the call.

use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER};

use crate::attempt::{AttemptResult, CancelPoint};
use crate::http::error;
use crate::http::error::HttpError;
use crate::http::send_guard::SendGuard;
use crate::output::OutputCollector;
use redact::Mask;
use toolq_core::text::{format_bytes, truncate};
use toolq_core::types::{
    CallEnding, CallOutput, DoubtCause, Effect, HttpBacking, Outcome, TransportError,
    TransportPhase,
};

/// How many characters of an encoding's name are shown.
const MAX_ENCODING_CHARS: usize = 40;

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
    pub(crate) fn into_cancelled(self, send_guard: &SendGuard, effect: Effect) -> AttemptResult {
        let cancel_point = if send_guard.try_cancel() {
            CancelPoint::BeforeStart
        } else if effect == Effect::Write {
            CancelPoint::Unknown
        } else {
            CancelPoint::WhileRunning
        };
        AttemptResult::Cancelled {
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

/// Returns `Content-Encoding` (RFC 9110, section 8.4), unless it is empty or `identity`.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Option<String> {
    let encodings = headers.get_all(CONTENT_ENCODING).into_iter();
    let encodings = encodings.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let encodings: Vec<_> = encodings
        .filter(|value| !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "identity"))
        .collect();
    (!encodings.is_empty()).then(|| truncate(&encodings.join(", "), MAX_ENCODING_CHARS))
}

/// Returns `Retry-After` (RFC 9110, section 10.2.3), a number of seconds or a date, as the time from `now`. A date in
/// the past or an invalid value is ignored.
pub(crate) fn parse_retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(value)
        .ok()?
        .duration_since(now)
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scheduler::retry;
    use toolq_core::testing::sample_tool;
    use toolq_core::types::{CallTimeouts, RetryCondition, RetryPolicy, Tool};

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        for (value, seconds) in [
            ("0", Some(0)),
            ("864000", Some(864_000)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("99999999999999999999999", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(
                parse_retry_after(&headers, now),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }

    /// The wait is at least what the server requests, as far as the rest of the total timeout (or else `max_backoff`)
    /// allows. Invalid values are ignored.
    #[test]
    fn retry_after_is_a_bounded_minimum() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let policy = |total| Tool {
            retry: RetryPolicy {
                max_retries: 1,
                conditions: vec![RetryCondition::RateLimited],
                initial_backoff: Duration::from_secs(2),
                max_backoff: Duration::from_secs(30),
            },
            timeout: CallTimeouts {
                total,
                ..sample_tool("t").timeout
            },
            effect: Effect::Write,
            ..sample_tool("t")
        };
        let limited = Outcome::Failed {
            output: CallOutput::default(),
            ending: CallEnding::HttpStatus(429),
        };
        let minute = Duration::from_mins(1);
        for (header, left, seconds) in [
            ("5", None, 5.0..=5.0),
            ("5", Some(minute), 5.0..=5.0),
            ("Sun, 06 Nov 1994 08:49:57 GMT", Some(minute), 20.0..=20.0),
            ("864000", None, 30.0..=30.0),
            ("864000", Some(minute), 54.0..=54.0),
            ("Wed, 16 Nov 1994 08:49:37 GMT", Some(minute), 54.0..=54.0),
            ("99999999999999999999999", Some(minute), 1.0..=2.0),
            ("18446744073709551615", Some(minute), 54.0..=54.0),
            ("0", Some(minute), 1.0..=2.0),
            ("-5", Some(minute), 1.0..=2.0),
            ("5 seconds", Some(minute), 1.0..=2.0),
            ("Sun, 06 Nov 1994 08:49:17 GMT", Some(minute), 1.0..=2.0),
            ("5", Some(Duration::from_secs(1)), 0.9..=0.9),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, header.parse().unwrap())]);
            let requested = parse_retry_after(&headers, now);
            let wait = retry::next_wait(&policy(left), 1, &limited, requested, left, 7).unwrap();
            assert!(
                seconds.contains(&wait.as_secs_f64()),
                "{header} {left:?}: {wait:?}"
            );
            let no_time_left = Some(Duration::ZERO);
            assert_eq!(
                retry::next_wait(
                    &policy(no_time_left),
                    1,
                    &limited,
                    requested,
                    no_time_left,
                    7
                ),
                None
            );
            assert_eq!(
                retry::next_wait(&policy(left), 2, &limited, requested, left, 7),
                None
            );
        }
    }
}
