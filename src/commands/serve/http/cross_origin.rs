//! What browsers want to know before a web page of another origin may use the server.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderValue, VARY,
};
use hyper::{HeaderMap, Response, StatusCode};

use crate::commands::serve::http::endpoint::METHODS;
use crate::commands::serve::http::reply::{HttpReplyBody, empty_body};

/// How long a browser may keep the answer, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// The headers of responses that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("mcp-session-id, www-authenticate");

/// Answers the question of a browser whether a page of an allowed origin may send a request.
pub(super) fn answer_preflight(headers: &HeaderMap) -> Response<HttpReplyBody> {
    let mut response = Response::new(empty_body());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // The origin is allowed, so it may send any header: arguments have headers with names of their own.
    if let Some(asked) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    response
}

/// Lets a page of an allowed origin read the response.
pub(super) fn allow_origin(response: &mut Response<HttpReplyBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.insert(VARY, HeaderValue::from_static("origin"));
}
