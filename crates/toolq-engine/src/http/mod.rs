//! HTTP backings: send a request, and read its response within limits on time and size.

mod clients;
pub(crate) mod error;
mod request;
mod resolver;
mod response;
mod runner;
mod send_guard;

pub(crate) use clients::HttpClients;
pub(crate) use error::HttpError;
pub use resolver::Resolver;
pub(crate) use response::{content_encoding, parse_retry_after};
pub(crate) use runner::HttpRunner;
