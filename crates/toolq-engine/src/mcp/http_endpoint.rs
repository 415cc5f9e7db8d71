//! The address of a server that runs elsewhere, with the variables of the environment filled in.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request};
use url::Url;

use crate::http::{HttpClients, build_failure, resolve_template};
use toolq_core::os::Environment;
use toolq_core::types::{Outcome, ServerConfig, ServerEndpoint};

/// Where a server is, and how requests reach it.
pub(crate) struct HttpEndpoint {
    pub(crate) client: Client,
    /// What errors call the server.
    pub(crate) origin: String,
    url: Url,
    headers: HeaderMap,
}

impl HttpEndpoint {
    /// Fills in the variables. Nothing is sent.
    ///
    /// # Errors
    /// The outcome of the call, because a variable is missing or has a value that can't be used.
    pub(crate) fn resolve(
        server: &ServerConfig,
        endpoint: &ServerEndpoint,
        clients: &HttpClients,
        environment: &Environment,
    ) -> Result<Self, Outcome> {
        let origin = format!("MCP server {:?}", server.name);
        let failure = |detail: &str| build_failure(origin.clone(), detail.to_owned());
        let url = resolve_template(&endpoint.url, environment)?;
        let url = Url::parse(&url).ok();
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let Some(mut url) = url.filter(is_web) else {
            return Err(failure("its `url` isn't the address of a web server"));
        };
        url.set_fragment(None);
        let mut headers = HeaderMap::new();
        for (name, template) in &endpoint.headers {
            let value = HeaderValue::from_str(&resolve_template(template, environment)?);
            let (Ok(name), Ok(mut value)) = (name.parse::<HeaderName>(), value) else {
                let detail = format!("the value of the header {name} contains invalid characters");
                return Err(failure(&detail));
            };
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(Self {
            client: clients.get_for_server(&url, server.startup)?,
            origin,
            url,
            headers,
        })
    }

    /// Returns a request without a body.
    pub(crate) fn request(&self, method: Method) -> Request {
        let mut request = Request::new(method, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        request
    }
}
