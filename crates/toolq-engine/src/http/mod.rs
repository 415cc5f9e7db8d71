//! HTTP backings: send a request, and read its response within limits of time and size.

mod clients;
pub(crate) mod error;
mod request;
mod resolver;
mod response;
mod runner;
mod send_guard;

pub(crate) use clients::Clients;
pub(crate) use error::Fault;
pub use resolver::Resolver;
pub(crate) use response::{encoding, retry_after};
pub(crate) use runner::Requests;
