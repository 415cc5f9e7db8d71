//! One answer of a model: the request is sent, and sent again as the tool's `retry` says. A request has no effect but its
//! answer, so that nothing speaks against asking twice.

use std::time::{Duration, SystemTime};

use reqwest::Response as HttpResponse;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::execute::http::failure::{self, Fault};
use crate::execute::http::response::{encoding, retry_after};
use crate::execute::retry;
use crate::model::{
    AgentFault, Body, HttpBacking, HttpMethod, Outcome, Response, RetryOn, Template,
    TransportPhase, Turn, format_bytes, format_duration,
};
use crate::parse::{Assembly, ResponseFault, response};
use crate::validate::clipped;

use super::Broken;
use super::conversation::Conversation;
use super::request::Address;

/// The largest answer that is read, in bytes.
const LARGEST: usize = 32 << 20;
/// Characters of a page that is no answer.
const SHOWN: usize = 300;

/// Why a request has no answer, and what may be done about it.
pub(super) struct Trouble {
    why: Broken,
    /// The reason to ask again, if it is one.
    again: Option<RetryOn>,
    /// The model has more to do than it can.
    overloaded: bool,
    /// The least time that the server wants to pass before the next request.
    retry_after: Option<Duration>,
}

impl Trouble {
    /// One that asking again does not mend.
    fn last(why: impl Into<Broken>) -> Self {
        Self {
            why: why.into(),
            again: None,
            overloaded: false,
            retry_after: None,
        }
    }
}

impl Conversation<'_> {
    /// The next answer; `number` is that of its turn. The digest of the request comes with it.
    ///
    /// # Errors
    /// Why there is none, after all attempts.
    pub(super) async fn answer(
        &self,
        address: &Address,
        models: (&str, Option<&str>),
        number: usize,
    ) -> Result<(Response, Turn, String), Broken> {
        let (mut model, mut fallback) = models;
        let mut attempt = 0;
        loop {
            let body = address.body(model, &self.messages, self.kit.declared.as_deref());
            let digest = crate::execute::digest::of_text(&body);
            let trouble = match self.send(address, body, number).await {
                Ok((mut response, turn)) => {
                    response.model.get_or_insert_with(|| model.to_owned());
                    return Ok((response, turn, digest));
                }
                Err(trouble) => trouble,
            };
            if let Some(other) = fallback.take_if(|_| trouble.overloaded) {
                self.voice
                    .tip(format!("{model} is overloaded, asks {other}"));
                model = other;
                continue;
            }
            attempt += 1;
            let left = self.until.saturating_sub(self.control.now());
            let policy = &self.job.accepted.tool.retry;
            let wait = trouble.again.and_then(|why| {
                retry::wait_to_ask(policy, attempt, why, trouble.retry_after, left, self.seed)
            });
            let Some(wait) = wait else {
                return Err(trouble.why);
            };
            self.voice.tip(format!(
                "{model} has no answer, asks again in {}",
                format_duration(wait)
            ));
            self.control.sleep(wait).await;
        }
    }

    async fn send(
        &self,
        address: &Address,
        body: String,
        number: usize,
    ) -> Result<(Response, Turn), Trouble> {
        let request = address.request(body);
        let after = self.job.accepted.tool.timeout.after;
        let client = self
            .agents
            .clients
            .get(&request, &plain(), after, &self.agents.environment)
            .map_err(Trouble::last)?;
        let origin = address.origin();
        let sent = client.execute(request).await;
        let response = sent.map_err(|error| unreached(failure::of_request(&origin, &error)))?;
        self.read(response, &origin, number).await
    }

    async fn read(
        &self,
        mut http: HttpResponse,
        origin: &str,
        number: usize,
    ) -> Result<(Response, Turn), Trouble> {
        let status = http.status().as_u16();
        let wish = retry_after(http.headers(), SystemTime::now());
        if let Some(encoding) = encoding(http.headers()) {
            let why = format!("its body is encoded ({encoding}), which no request asks for");
            return Err(Trouble::last(AgentFault::Unreadable(why)));
        }
        let mut streamed = is_stream(http.headers()).then(|| Assembly::new(self.backing.api));
        let (mut body, mut total) = (Vec::new(), 0);
        loop {
            let piece = http.chunk().await.map_err(|error| {
                let cause = failure::cause(&error);
                unreached(failure::broken(TransportPhase::Body, origin, cause))
            })?;
            let Some(piece) = piece else { break };
            total += piece.len();
            if total > LARGEST {
                let why = format!("it has more than {}", format_bytes(LARGEST as u64));
                return Err(Trouble::last(AgentFault::Unreadable(why)));
            }
            match &mut streamed {
                Some(assembly) => assembly.push(&piece).map_err(|fault| told(fault, wish))?,
                None => body.extend_from_slice(&piece),
            }
        }
        let body = match streamed {
            Some(assembly) => {
                let whole = assembly.body().map_err(|fault| told(fault, wish))?;
                whole.ok_or_else(|| {
                    let why = "the stream ended before the answer did".to_owned();
                    unreached(failure::broken(TransportPhase::Body, origin, why))
                })?
            }
            None => String::from_utf8_lossy(&body).into_owned(),
        };
        let read = response(self.backing.api, &body, number);
        match read {
            Ok(answer) if (200..300).contains(&status) => Ok(answer),
            Ok(_) | Err(ResponseFault::Strange(_)) if !(200..300).contains(&status) => {
                Err(refused(Some(status), "", &clipped(&body, SHOWN), wish))
            }
            Ok(_) => Err(refused(Some(status), "", "", wish)),
            Err(ResponseFault::Error { kind, message }) => {
                let said = Some(status).filter(|status| *status != 200);
                Err(refused(said, &kind, &message, wish))
            }
            Err(ResponseFault::Strange(why)) => {
                let why = format!("{why}; it begins: {}", clipped(&body, SHOWN));
                Err(Trouble::last(AgentFault::Unreadable(why)))
            }
        }
    }
}

/// What a stream told in the place of an answer, behind a head that promised one.
fn told(fault: ResponseFault, retry_after: Option<Duration>) -> Trouble {
    match fault {
        ResponseFault::Error { kind, message } => refused(None, &kind, &message, retry_after),
        ResponseFault::Strange(why) => Trouble::last(AgentFault::Unreadable(why)),
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

/// An error that the API told, by status or by its word.
fn refused(
    status: Option<u16>,
    kind: &str,
    message: &str,
    retry_after: Option<Duration>,
) -> Trouble {
    let overloaded = status == Some(529) || kind == "overloaded_error";
    let again = match (status, kind) {
        (Some(429), _) | (None, "rate_limit_error") => Some(RetryOn::RateLimited),
        (Some(500..=504 | 529), _) | (None, "api_error" | "timeout_error" | "overloaded_error") => {
            Some(RetryOn::Unavailable)
        }
        _ => None,
    };
    let said = match (kind, message) {
        (kind, "") => kind.to_owned(),
        ("", message) => message.to_owned(),
        (kind, message) => format!("{message} ({kind})"),
    };
    Trouble {
        why: AgentFault::Api { status, said }.into(),
        again,
        overloaded,
        retry_after,
    }
}

/// A request that found no answer at all.
fn unreached(fault: Fault) -> Trouble {
    let outcome = match fault {
        Fault::Broken(transport) => Outcome::Transport(transport),
        Fault::Unsent(outcome) => outcome,
        // Its time is the agent's, and the encoding was looked at before.
        Fault::Late(_) | Fault::Encoded(_) => Outcome::NoBacking,
    };
    let is_passing = matches!(
        &outcome,
        Outcome::Transport(transport) if transport.phase != TransportPhase::Build
    );
    Trouble {
        again: is_passing.then_some(RetryOn::Unavailable),
        ..Trouble::last(outcome)
    }
}

/// A request without anything special: no redirects, no proxy.
fn plain() -> HttpBacking {
    HttpBacking {
        method: HttpMethod::Post,
        url: Template::default(),
        hosts: None,
        query: Vec::new(),
        headers: Vec::new(),
        body: Body::None,
        success_status: Vec::new(),
        select: None,
        redirects: 0,
        proxy: None,
    }
}
