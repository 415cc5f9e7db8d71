//! What a request is made of: URL, query, headers, body.

use crate::check::fill::body;
use crate::check::fill::values::{Problems, detail, draft, found, push, text};
use crate::json::Input;
use crate::template::Sink;
use crate::types::{
    Body, Detail, Draft, HostPattern, HttpBacking, HttpInvocation, JsonDraft, Part, Piece, Template,
};
use crate::url::hosts;

pub(crate) fn filled(http: &HttpBacking, input: &Input, problems: &mut Problems) -> HttpInvocation {
    let url = match &http.hosts {
        Some(hosts) => whole_url(&http.url, hosts, input),
        None => url(&http.url, input),
    };
    let url = problems.keep(url.map(Some));
    let mut pairs = |templates: &[(String, Template)], sink| {
        let mut filled = Vec::new();
        for (name, template) in templates {
            let value = problems.keep(draft(template, input, sink));
            filled.extend(value.map(|value| (name.clone(), value)));
        }
        filled
    };
    let query = pairs(&http.query, Sink::Text);
    let headers = pairs(&http.headers, Sink::Header);
    let body = match &http.body {
        Body::Input => Some(JsonDraft::Raw(input.raw().to_owned())),
        Body::None => None,
        Body::Json(template) => problems.keep(body::filled(template, input)),
    };
    HttpInvocation {
        url: url.unwrap_or_default(),
        query,
        headers,
        body,
    }
}

/// The URL that is a value, as its parser writes it.
fn whole_url(template: &Template, hosts: &[HostPattern], input: &Input) -> Result<Draft, Detail> {
    let path = template.sole_value().unwrap_or_default();
    let value = found(input, path, false)?.map(|raw| text(raw.into()));
    let url = hosts::admitted(&value.unwrap_or_default(), hosts);
    let url = url.map_err(|why| detail(path, why))?;
    Ok(Draft(vec![Piece::Text(url.into())]))
}

/// The URL with every value percent-encoded; an optional one that is missing leaves nothing. A value of its path may
/// neither be nor complete a segment that is empty, `.` or `..`: those lead to another resource.
fn url(template: &Template, input: &Input) -> Result<Draft, Detail> {
    let mut draft = Draft::default();
    let mut values = Vec::new();
    for part in &template.parts {
        match part {
            Part::Text(text) => push(&mut draft, text),
            Part::Env { name, default } => draft.0.push(Piece::Env {
                name: name.clone(),
                default: default.clone(),
            }),
            Part::Value { path, optional, .. } => {
                let start = draft.to_string().len();
                if let Some(raw) = found(input, path, *optional)? {
                    push(
                        &mut draft,
                        &Sink::Url.admitted(text(raw.into())).unwrap_or_default(),
                    );
                }
                values.push((path, start));
            }
        }
    }
    let whole = draft.to_string();
    match values
        .into_iter()
        .find(|(_, start)| changes_path(&whole, *start))
    {
        Some((path, _)) => Err(detail(
            path,
            "must not be empty, `.` or `..`, since it is a part of a URL's path",
        )),
        None => Ok(draft),
    }
}

/// Whether the segment of `url` around `at` is empty or a dot segment, which a client would resolve.
fn changes_path(url: &str, at: usize) -> bool {
    let (before, after) = url.split_at(at);
    if before.contains(['?', '#']) {
        return false;
    }
    let head = before.rsplit('/').next().unwrap_or_default();
    let tail = after.split(['/', '?', '#']).next().unwrap_or_default();
    let segment = format!("{head}{tail}")
        .to_ascii_lowercase()
        .replace("%2e", ".");
    matches!(segment.as_str(), "" | "." | "..")
}
