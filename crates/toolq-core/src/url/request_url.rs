//! A filled URL and the environment → the address that is asked. Whatever its values hold, it has the scheme, user,
//! host and port that the tool declares, or, where it takes a whole URL, one of the hosts.

use url::Url;

use crate::types::{Draft, HttpBacking, HttpInvocation, Part};
use crate::url::hosts;

/// Why a request has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// A variable of the environment is neither set nor has a default.
    #[error("the environment variable {0} is not set or empty")]
    MissingVariable(String),
    /// It is no address of a web server; the cause never holds a value.
    #[error("{0}")]
    Malformed(&'static str),
    /// The input's URL may not be asked.
    #[error("the URL {0}")]
    Refused(String),
}

/// The address of one request, query pairs encoded. `env` reads a variable of toolq's environment.
///
/// # Errors
/// A missing variable, or why the text is no address that the tool declares.
pub fn request_url(
    backing: &HttpBacking,
    request: &HttpInvocation,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Url, AddressFault> {
    let mut url = parsed(&request.url, env)?;
    match &backing.hosts {
        Some(hosts) => hosts::check(&url, hosts).map_err(AddressFault::Refused)?,
        None if same_server(&url, &parsed(&declared(backing), env)?) => {}
        None => {
            return Err(AddressFault::Malformed(
                "a value would change the server of the URL",
            ));
        }
    }
    for (name, draft) in &request.query {
        let value = draft.resolve(env).map_err(AddressFault::MissingVariable)?;
        url.query_pairs_mut().append_pair(name, &value);
    }
    url.set_fragment(None);
    Ok(url)
}

/// What stands before the first value of the input.
fn declared(backing: &HttpBacking) -> Draft {
    let author = backing.url.parts.iter().map_while(Part::as_piece);
    Draft(author.collect())
}

fn parsed(draft: &Draft, env: &dyn Fn(&str) -> Option<String>) -> Result<Url, AddressFault> {
    let text = draft.resolve(env).map_err(AddressFault::MissingVariable)?;
    let url = Url::parse(&text).map_err(|_| AddressFault::Malformed("the URL is malformed"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(AddressFault::Malformed("the URL is not of http or https")),
    }
}

fn same_server(one: &Url, other: &Url) -> bool {
    let server = |url: &Url| {
        let user = (url.username().to_owned(), url.password().map(str::to_owned));
        (
            url.scheme().to_owned(),
            user,
            url.host().map(|host| host.to_owned()),
            url.port(),
        )
    };
    server(one) == server(other)
}
