//! Builds the URL of a request from a filled template and the environment. Whatever the values are, the URL keeps the
//! scheme, user, host, and port that the tool declares, or, if the input supplies the whole URL, has one of the allowed
//! hosts.

use url::Url;

use crate::types::{HttpBacking, HttpInvocation, PartialTemplate, TemplatePart};
use crate::url::encode_query_text;
use crate::url::hosts;

/// Why a request has no URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestUrlError {
    /// An environment variable is unset or empty, and has no default.
    #[error("the environment variable {0} is unset or empty")]
    MissingVariable(String),
    /// The text isn't the URL of a web server. The message never contains a value.
    #[error("{0}")]
    Malformed(&'static str),
    /// The URL from the input isn't allowed.
    #[error("the URL {0}")]
    NotAllowed(String),
}

/// Builds the URL of one request, including the encoded query pairs. `env` looks up an environment variable.
///
/// # Errors
/// A variable is missing, or the URL is malformed or not one that the tool declares.
pub fn build_request_url(
    backing: &HttpBacking,
    request: &HttpInvocation,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Url, RequestUrlError> {
    let mut url = parse_filled_url(&request.url, env)?;
    match &backing.allowed_hosts {
        Some(hosts) => hosts::check_url(&url, hosts).map_err(RequestUrlError::NotAllowed)?,
        None if has_same_server(&url, &parse_filled_url(&declared_prefix(backing), env)?) => {}
        None => {
            return Err(RequestUrlError::Malformed(
                "a value would change the server in the URL",
            ));
        }
    }
    for (name, template) in &request.query {
        let value = template
            .resolve(env)
            .map_err(RequestUrlError::MissingVariable)?;
        let pair = format!("{}={}", encode_query_text(name), encode_query_text(&value));
        let query = match url.query() {
            None | Some("") => pair,
            Some(declared) => format!("{declared}&{pair}"),
        };
        url.set_query(Some(&query));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns the part of the URL before its first input value.
fn declared_prefix(backing: &HttpBacking) -> PartialTemplate {
    let literal_segments = backing.url.parts.iter().map_while(TemplatePart::as_segment);
    PartialTemplate(literal_segments.collect())
}

fn parse_filled_url(
    template: &PartialTemplate,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Url, RequestUrlError> {
    let text = template
        .resolve(env)
        .map_err(RequestUrlError::MissingVariable)?;
    let url = Url::parse(&text).map_err(|_| RequestUrlError::Malformed("the URL is malformed"))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        _ => Err(RequestUrlError::Malformed("the URL must use http or https")),
    }
}

fn has_same_server(one: &Url, other: &Url) -> bool {
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
