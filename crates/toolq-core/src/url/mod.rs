//! Where a request may go: host lists, public addresses, and the final URL of a request.

pub(crate) mod hosts;
mod public_address;
mod query;
mod request_url;

pub(crate) use hosts::{parse_host_name_pattern, parse_host_pattern};
pub use public_address::is_public;
pub(crate) use query::encode_query_text;
pub use request_url::{RequestUrlError, build_request_url};
