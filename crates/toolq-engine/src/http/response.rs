//! The response: its head, its body by pieces, and what both mean.

use std::time::{Duration, SystemTime};

use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, HeaderMap, RETRY_AFTER};

use crate::attempt::{End, Reach, Written};
use crate::http::error;
use crate::http::error::Fault;
use crate::http::send_guard::Sending;
use crate::output::Output;
use redact::Mask;
use toolq_core::text::{clipped, format_bytes};
use toolq_core::types::{
    Captured, Doubt, Effect, Ending, HttpBacking, Outcome, Transport, TransportPhase,
};

/// Characters of an encoding's name that are told.
const MAX_ENCODING: usize = 40;

/// A response that is coming.
#[derive(Debug)]
pub(crate) struct Coming {
    /// None where it is not there yet.
    pub(crate) head: Option<Head>,
    /// What of its body is there.
    pub(crate) body: Output,
}

/// What the head of a response says.
#[derive(Debug)]
pub(crate) struct Head {
    status: u16,
    is_success: bool,
    /// How its body is encoded, where it is. No request asks for that.
    encoding: Option<String>,
    /// The least time that the server wants to pass before the next request.
    retry_after: Option<Duration>,
}

impl Coming {
    /// How the attempt ends that was told to.
    pub(crate) fn given_up(self, sending: &Sending, effect: Effect) -> End {
        let reach = if sending.call_off() {
            Reach::Nowhere
        } else if effect == Effect::Write {
            Reach::Unknown
        } else {
            Reach::Midway
        };
        let written = Written::new(self.body, String::new());
        End::Cancelled { written, reach }
    }

    /// How the attempt ends after `read`. A failing status is the answer, whatever became of the page that explains it.
    pub(crate) fn end(self, read: Result<(), Fault>, effect: Effect, mask: &Mask) -> End {
        let retry_after = self.head.as_ref().and_then(|head| head.retry_after);
        let outcome = match (self.head, read) {
            (Some(head), read) if read.is_ok() || !head.is_success => head.conclude(self.body),
            (Some(head), Err(Fault::Encoded(encoding))) => head.encoded(&encoding),
            (_, Err(Fault::Unsent(outcome))) => outcome,
            (_, Err(Fault::Broken(transport))) => broken(transport, self.body, effect, mask),
            (_, Err(Fault::Late(limit))) => late(limit, self.body, effect),
            (_, Ok(()) | Err(Fault::Encoded(_))) => {
                Outcome::Broken("a response without a head".to_owned())
            }
        };
        End::Outcome {
            outcome,
            retry_after,
        }
    }
}

impl Head {
    pub(crate) fn of(response: &Response, backing: &HttpBacking) -> Self {
        let status = response.status().as_u16();
        let is_success = backing
            .success_status
            .iter()
            .any(|range| range.contains(&status));
        Self {
            status,
            is_success,
            encoding: encoding(response.headers()),
            retry_after: retry_after(response.headers(), SystemTime::now()),
        }
    }

    /// How the call ends with this head and body.
    fn conclude(&self, body: Output) -> Outcome {
        let ending = Ending::Http(self.status);
        if self.is_success {
            return body.succeed(ending, String::new);
        }
        let (output, captured) = body.into_text();
        Outcome::Failed {
            output,
            stderr: String::new(),
            captured,
            ending,
        }
    }

    fn encoded(&self, encoding: &str) -> Outcome {
        Outcome::BadOutput {
            problem: format!("its body is encoded ({encoding}), which no request asks for"),
            output: String::new(),
            stderr: String::new(),
            captured: Captured::default(),
            ending: Ending::Http(self.status),
        }
    }
}

/// What was sent and not answered may have had its effect.
fn broken(transport: Transport, body: Output, effect: Effect, mask: &Mask) -> Outcome {
    let detail = mask.text(&transport.detail).into_owned();
    let transport = Transport {
        detail,
        ..transport
    };
    let was_sent = matches!(
        transport.phase,
        TransportPhase::Response | TransportPhase::Body
    );
    if was_sent && effect == Effect::Write {
        in_doubt(Doubt::Broken(Box::new(transport)), body)
    } else {
        Outcome::Transport(transport)
    }
}

fn late(limit: Duration, body: Output, effect: Effect) -> Outcome {
    if effect == Effect::Write {
        return in_doubt(Doubt::TimedOut(limit), body);
    }
    let (output, captured) = body.into_text();
    Outcome::TimedOut {
        idle: false,
        limit,
        output,
        stderr: String::new(),
        captured,
    }
}

fn in_doubt(doubt: Doubt, body: Output) -> Outcome {
    let (output, captured) = body.into_text();
    Outcome::InDoubt {
        doubt,
        output,
        captured,
    }
}

/// Reads a body piece by piece, up to what `output` can use.
///
/// # Errors
/// Why it was not read to its end. An encoded body is not read at all: to decode what nobody asked for would let a
/// server turn few bytes into many.
pub(crate) async fn read(
    response: &mut Response,
    head: &Head,
    output: &mut Output,
    origin: &str,
) -> Result<(), Fault> {
    let most = output.most();
    let too_large = || {
        let detail = format!("the body has more than {}", format_bytes(most));
        error::broken(TransportPhase::TooLarge, origin, detail)
    };
    let announced = response.content_length();
    if head.encoding.is_none() && announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let cut = |error| error::broken(TransportPhase::Body, origin, error::cause(&error));
    let mut total = 0;
    while let Some(piece) = response.chunk().await.map_err(cut)? {
        if let Some(encoding) = &head.encoding {
            return Err(Fault::Encoded(encoding.clone()));
        }
        total += piece.len() as u64;
        if total > most {
            return Err(too_large());
        }
        output.push(&piece);
    }
    Ok(())
}

/// `Content-Encoding` (RFC 9110, section 8.4), where it says more than nothing.
pub(crate) fn encoding(headers: &HeaderMap) -> Option<String> {
    let named = headers.get_all(CONTENT_ENCODING).into_iter();
    let named = named.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let named: Vec<_> = named
        .filter(|value| !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "identity"))
        .collect();
    (!named.is_empty()).then(|| clipped(&named.join(", "), MAX_ENCODING))
}

/// `Retry-After` (RFC 9110, section 10.2.3): seconds or a date. One that is neither, or is over, says nothing.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
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
    use toolq_core::testing::tool;
    use toolq_core::types::{Retry, RetryOn, Timeout, Tool};

    /// FAULTS 99.
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
                retry_after(&headers, now),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }

    /// FAULTS 99: from the words of a server to the wait, at a time that is given: at least the wish, at most what is
    /// left, and no wish where the words are none.
    #[test]
    fn a_wish_is_a_bounded_minimum() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let policy = |total| Tool {
            retry: Retry {
                times: 1,
                on: vec![RetryOn::RateLimited],
                backoff: Duration::from_secs(2),
                max_backoff: Duration::from_secs(30),
            },
            timeout: Timeout {
                total,
                ..tool("t").timeout
            },
            effect: Effect::Write,
            ..tool("t")
        };
        let limited = Outcome::Failed {
            output: String::new(),
            stderr: String::new(),
            captured: Captured::default(),
            ending: Ending::Http(429),
        };
        let minute = Duration::from_mins(1);
        for (words, left, seconds) in [
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
            let headers = HeaderMap::from_iter([(RETRY_AFTER, words.parse().unwrap())]);
            let wish = retry_after(&headers, now);
            let wait = retry::wait(&policy(left), 1, &limited, wish, left, 7).unwrap();
            assert!(
                seconds.contains(&wait.as_secs_f64()),
                "{words} {left:?}: {wait:?}"
            );
            let over = Some(Duration::ZERO);
            assert_eq!(retry::wait(&policy(over), 1, &limited, wish, over, 7), None);
            assert_eq!(retry::wait(&policy(left), 2, &limited, wish, left, 7), None);
        }
    }
}
