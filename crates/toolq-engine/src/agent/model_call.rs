//! One answer of a model: the request is sent, and sent again as the tool's `retry` says. A request has no effect but its
//! answer, so that nothing speaks against asking twice, until a call of the answer has started.

use std::time::SystemTime;

use reqwest::Response as HttpResponse;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::agent::conversation::Conversation;
use crate::agent::error::{Broken, in_doubt};
use crate::agent::request::Address;
use crate::agent::request_error::{Trouble, refused, told, unreached};
use crate::agent::streaming::{Aloud, Speech};
use crate::agent::toolset::Kit;
use crate::http::error;
use crate::http::{encoding, retry_after};
use crate::scheduler::retry;
use toolq_core::text::{clipped, format_bytes, format_duration};
use toolq_core::transcript::{ResponseFault, response};
use toolq_core::types::{
    AgentFault, Body, HttpBacking, HttpMethod, NotExecuted, Response, Template, TransportPhase,
    Turn,
};

/// The largest answer that is read, in bytes.
const LARGEST: usize = 32 << 20;
/// Characters of a page that is no answer.
const SHOWN: usize = 300;

/// An answer that is whole.
pub(crate) struct Heard<'k> {
    pub(crate) response: Response,
    pub(crate) turn: Turn,
    /// Of the request.
    pub(crate) digest: String,
    /// The calls of it that have started, if any have.
    pub(crate) speech: Speech<'k>,
}

impl Conversation<'_> {
    /// The next answer; `number` is that of its turn. What is streamed stands in `spoken`, however it ends.
    ///
    /// # Errors
    /// Why there is none, after all attempts.
    pub(crate) async fn answer<'k>(
        &self,
        kit: &'k Kit,
        address: &Address,
        models: (&str, Option<&str>),
        number: usize,
        spoken: &mut String,
    ) -> Result<Heard<'k>, Broken> {
        let (mut model, mut fallback) = models;
        let mut attempt = 0;
        loop {
            let body = address.body(model, &self.messages, self.kit.declared.as_deref());
            let digest = crate::digests::of_text(&body);
            let (api, around, desk) = (self.backing.api, &self.around, &self.desk);
            let asked = (model, &self.agents.mask);
            let mut speech = Speech::new(api, asked, number, kit, around, desk);
            let aloud = Aloud {
                speech: &mut speech,
                spoken,
            };
            let sent = self.send(address, body, number, aloud).await;
            let trouble = match sent {
                Ok((mut response, turn)) => {
                    response.model.get_or_insert_with(|| model.to_owned());
                    speech.is_heard();
                    return Ok(Heard {
                        response,
                        turn,
                        digest,
                        speech,
                    });
                }
                Err(trouble) => trouble,
            };
            if speech.has_begun() {
                if let Some(doubt) = speech.end(NotExecuted::BrokeOff, false).await {
                    return Err(in_doubt(doubt).into());
                }
                return Err(trouble.too_late());
            }
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
        aloud: Aloud<'_, '_>,
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
        let response = sent.map_err(|error| unreached(error::of_request(&origin, &error)))?;
        self.read(response, &origin, number, aloud.speech).await
    }

    async fn read(
        &self,
        mut http: HttpResponse,
        origin: &str,
        number: usize,
        speech: &mut Speech<'_>,
    ) -> Result<(Response, Turn), Trouble> {
        let status = http.status().as_u16();
        let wish = retry_after(http.headers(), SystemTime::now());
        if let Some(encoding) = encoding(http.headers()) {
            let why = format!("its body is encoded ({encoding}), which no request asks for");
            return Err(Trouble::last(AgentFault::Unreadable(why)));
        }
        let framed = is_stream(http.headers());
        // What is refused is no answer, whatever it is called.
        let streamed = framed && (200..300).contains(&status);
        // The calls of the last answer don't run.
        let serves = !self.is_last(number);
        let (mut body, mut total) = (Vec::new(), 0);
        loop {
            let piece = match http.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // What was cut behind the answer is missed by nobody.
                Err(_) if streamed && speech.is_complete() => break,
                Err(error) => {
                    let cause = error::cause(&error);
                    return Err(unreached(error::broken(
                        TransportPhase::Body,
                        origin,
                        cause,
                    )));
                }
            };
            total += piece.len();
            if total > LARGEST {
                let why = format!("it has more than {}", format_bytes(LARGEST as u64));
                return Err(Trouble::last(AgentFault::Unreadable(why)));
            }
            if !streamed {
                body.extend_from_slice(&piece);
                continue;
            }
            speech.push(&piece).map_err(|fault| told(fault, wish))?;
            if serves {
                speech.let_go();
            }
            // The end of the body may come late, or never.
            if speech.is_over() {
                break;
            }
            // A stream without a pause keeps nobody else waiting: not the limit of the agent, not a signal.
            tokio::task::yield_now().await;
        }
        let body = if streamed {
            let whole = speech.body().map_err(|fault| told(fault, wish))?;
            whole.ok_or_else(|| {
                let why = "the stream ended before the answer did".to_owned();
                unreached(error::broken(TransportPhase::Body, origin, why))
            })?
        } else if framed {
            unframed(&String::from_utf8_lossy(&body))
        } else {
            String::from_utf8_lossy(&body).into_owned()
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

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"))
}

/// The data of the first event; all of it, where there is none.
fn unframed(body: &str) -> String {
    let lines = body.lines().map(|line| line.strip_prefix("data:"));
    let event = lines.skip_while(Option::is_none).map_while(|data| data);
    let data: Vec<&str> = event.map(str::trim_start).collect();
    match &data[..] {
        [] => body.to_owned(),
        data => data.join("\n"),
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
