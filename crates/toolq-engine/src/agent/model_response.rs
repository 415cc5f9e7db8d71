//! Reads the response of a model.

use std::time::{Duration, SystemTime};

use reqwest::Response as HttpResponse;

use crate::agent::request_error::{RequestError, from_status, from_transport};
use crate::http::error;
use crate::http::{content_encoding, parse_retry_after};
use toolq_core::text::{format_bytes, truncate};
use toolq_core::transcript::{ResponseError, parse_response};
use toolq_core::types::{AgentFailure, Api, ModelResponse, TransportPhase, Turn};

/// The maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// The maximum length of the excerpt from an invalid response in an error.
const MAX_EXCERPT_CHARS: usize = 300;

/// The head of a response.
struct ResponseHead {
    status: u16,
    /// The wait that the server asked for.
    retry_after: Option<Duration>,
}

/// Reads the response of turn `turn_number`, whose head has arrived from `origin`.
///
/// # Errors
/// The connection broke off, the API reported an error, or the body isn't a model response.
pub(crate) async fn read_response(
    http: HttpResponse,
    origin: &str,
    api: Api,
    turn_number: usize,
) -> Result<(ModelResponse, Turn), RequestError> {
    if let Some(encoding) = content_encoding(http.headers()) {
        return Err(unreadable(format!(
            "its body is encoded ({encoding}), although no encoding was requested"
        )));
    }
    let head = ResponseHead {
        status: http.status().as_u16(),
        retry_after: parse_retry_after(http.headers(), SystemTime::now()),
    };
    let body = read_body(http, origin).await?;
    head.parse_body(api, &String::from_utf8_lossy(&body), turn_number)
}

async fn read_body(mut http: HttpResponse, origin: &str) -> Result<Vec<u8>, RequestError> {
    let broken = |error: reqwest::Error| {
        let why = error::root_cause(&error);
        from_transport(error::transport_error(TransportPhase::Body, origin, why))
    };
    let mut body = Vec::new();
    while let Some(chunk) = http.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            let limit = format_bytes(MAX_RESPONSE_BYTES as u64);
            return Err(unreadable(format!("it is larger than {limit}")));
        }
    }
    Ok(body)
}

impl ResponseHead {
    fn parse_body(
        &self,
        api: Api,
        body: &str,
        turn_number: usize,
    ) -> Result<(ModelResponse, Turn), RequestError> {
        let is_success = (200..300).contains(&self.status);
        let excerpt = || truncate(body, MAX_EXCERPT_CHARS);
        match parse_response(api, body, turn_number) {
            Ok(response) if is_success => Ok(response),
            Err(ResponseError::Api { kind, message }) => {
                let status = Some(self.status).filter(|status| *status != 200);
                Err(from_status(status, &kind, &message, self.retry_after))
            }
            Err(ResponseError::Unreadable(why)) if is_success => {
                Err(unreadable(format!("{why}; it starts with: {}", excerpt())))
            }
            Ok(_) | Err(ResponseError::Unreadable(_)) => {
                let status = Some(self.status);
                Err(from_status(status, "", &excerpt(), self.retry_after))
            }
        }
    }
}

fn unreadable(why: String) -> RequestError {
    RequestError::permanent(AgentFailure::UnreadableResponse(why))
}
