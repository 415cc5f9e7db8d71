//! The response to a POST: nothing, all answers at once, or a stream of events.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use crate::commands::serve::http::endpoint::json_response;
use crate::commands::serve::http::reply::{HttpReplyBody, PostMessages, empty_body};

pub(super) fn accepted_response() -> Response<HttpReplyBody> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(super) fn event_response(messages: PostMessages) -> Response<HttpReplyBody> {
    let mut response = Response::new(messages.into_events());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies pass on each event at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Waits for all messages. There are no messages for a call that its client has canceled.
pub(super) async fn whole_response(
    messages: PostMessages,
    is_batch: bool,
) -> Response<HttpReplyBody> {
    let lines = messages.collect().await;
    if lines.is_empty() {
        return accepted_response();
    }
    let json = if is_batch { batch_json(&lines) } else { lines };
    json_response(StatusCode::OK, json)
}

/// Puts the messages, each in a line, into an array.
fn batch_json(lines: &[u8]) -> Vec<u8> {
    let mut json = vec![b'['];
    for line in lines.split(|byte| *byte == b'\n') {
        if !line.is_empty() {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(line);
        }
    }
    json.push(b']');
    json
}
