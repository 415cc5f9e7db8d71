//! HTTP backings: send a request, and read its response within limits on time and size.

mod clients;
pub(crate) mod error;
mod response;
mod runner;

pub(crate) use clients::{HttpClients, resolve_template};
pub use clients::{Resolver, http_client_builder};
pub(crate) use error::{HttpError, SendGuard, build_failure, classify_cause, root_cause};
pub(crate) use response::{content_encoding, media_type, parse_retry_after};
pub(crate) use runner::HttpRunner;
