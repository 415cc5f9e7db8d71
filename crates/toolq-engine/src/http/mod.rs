//! HTTP backings: send a request, and read its response within limits on time and size.

mod clients;
pub(crate) mod error;
mod runner;

use std::io::{self, Write as _};
use std::mem;
use std::time::{Duration, SystemTime};

use flate2::write::MultiGzDecoder;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};

use toolq_core::text::truncate;
use toolq_core::types::Outcome;

pub(crate) use clients::HttpClients;
pub use clients::http_client_builder;
pub(crate) use error::{HttpError, SendGuard, build_failure, classify_cause, root_cause};
pub(crate) use runner::HttpRunner;

// The headers that tools.yaml has for requests.

/// Returns headers from their names and values. The values of `are_secret` ones are never shown.
///
/// # Errors
/// The outcome of the call, because a variable is missing or a value isn't allowed in a header.
pub(crate) fn resolve_headers<'n>(
    declared: impl Iterator<Item = (&'n String, Result<String, Outcome>)>,
    origin: &str,
    are_secret: bool,
) -> Result<HeaderMap, Outcome> {
    let mut headers = HeaderMap::new();
    for (name, value) in declared {
        let value = HeaderValue::from_str(&value?);
        let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), value) else {
            let problem = format!("the value of the header {name} contains invalid characters");
            return Err(build_failure(origin.to_owned(), problem));
        };
        value.set_sensitive(are_secret);
        headers.append(name, value);
    }
    Ok(headers)
}

// The headers of a response that decide what happens to it, and decodes its body.

/// How many characters of an encoding's name are shown.
const MAX_ENCODING_CHARS: usize = 40;

/// Returns `Content-Encoding` (RFC 9110, section 8.4), unless it is empty or `identity`.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Option<String> {
    let encodings = headers.get_all(CONTENT_ENCODING).into_iter();
    let encodings = encodings.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let encodings: Vec<_> = encodings
        .filter(|value| !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "identity"))
        .collect();
    (!encodings.is_empty()).then(|| truncate(&encodings.join(", "), MAX_ENCODING_CHARS))
}

/// Returns the media type of `Content-Type`, without its parameters, in lowercase.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default();
    Some(media_type.trim().to_ascii_lowercase())
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

// Decodes a body that a server has compressed, whether or not it was asked to.

/// A body in gzip (RFC 1952) that is still arriving.
pub(super) struct GzipBody {
    decoder: MultiGzDecoder<Vec<u8>>,
    is_empty: bool,
}

impl GzipBody {
    pub(super) fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
            is_empty: true,
        }
    }

    /// Returns what the next bytes stand for, which may be a thousand times as long.
    ///
    /// # Errors
    /// They aren't gzip.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.is_empty &= bytes.is_empty();
        self.decoder.write_all(bytes)?;
        Ok(mem::take(self.decoder.get_mut()))
    }

    /// Returns the rest, once all bytes have arrived.
    ///
    /// # Errors
    /// The body isn't whole. An empty one is: not every response has a body.
    pub(super) fn finish(&mut self) -> io::Result<Vec<u8>> {
        if !self.is_empty {
            self.decoder.try_finish()?;
        }
        Ok(mem::take(self.decoder.get_mut()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scheduler;
    use toolq_core::types::{
        CallEnding, CallOutput, CallTimeouts, Effect, Outcome, RetryCondition, RetryPolicy, Tool,
    };
    use toolq_testing::sample_tool;

    /// Anything else is ignored.
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
            let wait =
                scheduler::next_wait(&policy(left), 1, &limited, requested, left, 7).unwrap();
            assert!(
                seconds.contains(&wait.as_secs_f64()),
                "{header} {left:?}: {wait:?}"
            );
            let no_time_left = Some(Duration::ZERO);
            assert_eq!(
                scheduler::next_wait(
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
                scheduler::next_wait(&policy(left), 2, &limited, requested, left, 7),
                None
            );
        }
    }
}
