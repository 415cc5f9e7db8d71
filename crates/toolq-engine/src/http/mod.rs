//! HTTP backings: send a request, and read its response within limits on time and size.

mod clients;
pub(crate) mod error;
mod gzip_body;
mod request_body;
mod resolver;
mod response_headers;
mod runner;
mod send_guard;

pub use clients::http_client_builder;
pub(crate) use clients::{HttpClients, resolve_template};
pub(crate) use error::{HttpError, build_failure, classify_cause, root_cause};
pub use resolver::Resolver;
pub(crate) use response_headers::{content_encoding, media_type, parse_retry_after};
pub(crate) use runner::HttpRunner;
pub(crate) use send_guard::SendGuard;
