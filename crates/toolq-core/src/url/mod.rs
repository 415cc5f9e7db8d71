//! Where a request may go: lists of hosts, public addresses, and the URL that a template becomes.

pub(crate) mod hosts;
mod public_address;
mod request_url;

pub(crate) use hosts::pattern;
pub use public_address::is_public;
pub use request_url::{AddressFault, request_url};
