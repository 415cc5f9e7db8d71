//! HTTP backings: the request that does the work of a tool.

use std::fmt;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::types::template::Template;

/// `http`: a request, and how its response is read.
#[derive(Debug, Clone)]
pub struct HttpBacking {
    /// Defaults to GET.
    pub method: HttpMethod,
    /// Input values may appear only in the path or after it, unless the URL is a single value and `hosts` is set.
    pub url: Template,
    /// `hosts`: if the input supplies the whole URL, the only hosts that may be contacted, and only at public
    /// addresses.
    pub allowed_hosts: Option<Vec<HostPattern>>,
    /// Query parameters, as name and value.
    pub query: Vec<(String, Template)>,
    /// Header names are lowercase.
    pub headers: Vec<(String, Template)>,
    /// The body to send.
    pub body: RequestBody,
    /// Statuses that count as success.
    pub success_status: Vec<StatusRange>,
    /// JSON pointer to the part of the response that becomes the result.
    pub select: Option<String>,
    /// Maximum number of redirects to follow, all within the same origin.
    pub max_redirects: u32,
    /// Proxy URL. Proxy variables in the environment are ignored.
    pub proxy: Option<Template>,
}

impl HttpBacking {
    /// Returns all templates that are filled in for a request, in the order of the fields.
    pub fn templates(&self) -> Vec<&Template> {
        let pairs = self.query.iter().chain(&self.headers);
        let body = match &self.body {
            RequestBody::Json(body) => body.templates(),
            RequestBody::Input | RequestBody::None => Vec::new(),
        };
        std::iter::once(&self.url)
            .chain(pairs.map(|(_, template)| template))
            .chain(body)
            .chain(&self.proxy)
            .collect()
    }

    /// Whether the request sends a form.
    pub(crate) fn sends_form(&self) -> bool {
        let mut headers = self.headers.iter();
        let content_type = headers.find(|(name, _)| name == "content-type");
        let text = content_type.and_then(|(_, template)| template.sole_text());
        let media_type = text.unwrap_or_default().split(';').next();
        media_type.is_some_and(|name| name.trim().eq_ignore_ascii_case(FORM_MEDIA_TYPE))
    }
}

/// One entry of `hosts`, normalized like a parsed URL: lowercase and punycode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this host.
    Exact(String),
    /// `*.` followed by this suffix: every subdomain of it, but not the suffix itself.
    Subdomains(String),
}

impl HostPattern {
    /// Whether this pattern matches the host of a parsed URL.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(exact) => host == exact,
            Self::Subdomains(suffix) => host
                .strip_suffix(suffix)
                .is_some_and(|label| label.len() > 1 && label.ends_with('.')),
        }
    }
}

/// Formats the pattern as it would be written in tools.yaml.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Subdomains(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

/// First and last status, both inclusive.
pub type StatusRange = RangeInclusive<u16>;

/// The methods of RFC 9110 and RFC 5789 that a tool may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names are the methods")]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// The method name as sent in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether requests with this method have a body by default.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// The media type of forms: `name=value&other=value`.
pub const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The body of a request.
#[derive(Debug, Clone)]
pub enum RequestBody {
    /// The input as JSON.
    Input,
    /// Nothing.
    None,
    /// A JSON tree whose strings are templates. What is sent also depends on the content type: an object may become a form,
    /// and a string is sent as it is where that isn't JSON.
    Json(BodyTemplate),
}

/// A JSON tree whose strings are templates. Object keys never are.
#[derive(Debug, Clone)]
pub enum BodyTemplate {
    /// A number, boolean, or null, as declared.
    Literal(serde_json::Value),
    /// A string. If it consists of a single placeholder, the value keeps its type.
    Template(Template),
    /// An array. An optional value that is missing drops its element.
    Array(Vec<BodyTemplate>),
    /// An object. An optional value that is missing drops its pair.
    Object(Vec<(String, BodyTemplate)>),
}

impl BodyTemplate {
    /// Returns the templates in the tree, in order.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::Array(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Object(pairs) => {
                let values = pairs.iter().map(|(_, value)| value);
                values.flat_map(Self::templates).collect()
            }
        }
    }
}
