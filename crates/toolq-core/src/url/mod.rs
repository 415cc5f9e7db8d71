//! Where a request may go: host lists, public addresses, and the final URL of a request.

pub(crate) mod request_url;

pub use request_url::{RequestUrlError, build_request_url, is_public};
pub(crate) use request_url::{encode_query_text, parse_host_name_pattern, parse_host_pattern};
