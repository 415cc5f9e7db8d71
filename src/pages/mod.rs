//! Pages: self-contained HTML files that need no network. Everything that a model or a tool wrote is plain text in them.

mod plan;
mod replay;
mod time_axis;
mod timeline;

use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use toolq_core::text::escape;

pub(crate) use plan::PlanPage;
pub(crate) use replay::{ReplayRow, ReplayState, SideRow, replay_page, side_rows};
pub(crate) use time_axis::input_beginning;
pub(crate) use timeline::timeline_page;

// What all pages have in common: the head, the style, and a policy that only lets this page's own script run.

const STYLE: &str = include_str!("page.css");

/// A browser lays out this many rows at once, and leaves out those that aren't on the screen. The style says so, too.
pub(crate) const CHUNK_ROWS: usize = 100;

/// The parts of a page.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) body: Markup,
    /// What the script reads, as JSON.
    pub(crate) data: String,
    pub(crate) script: &'static str,
    /// After how many seconds a browser reloads the page, if what it shows is still in progress.
    pub(crate) reload_after: Option<u32>,
}

impl Page {
    /// Returns the page as HTML.
    pub(crate) fn into_html(self) -> String {
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'",
            source_hash(self.script),
            source_hash(STYLE),
        );
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    @if let Some(seconds) = self.reload_after {
                        meta http-equiv="refresh" content=(seconds);
                    }
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="generator" content=(concat!("toolq ", env!("CARGO_PKG_VERSION")));
                    title { (visible_text(&self.title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.body)
                    script type="application/json" id="data" { (PreEscaped(inert_json(&self.data))) }
                    script { (PreEscaped(self.script)) }
                }
            }
        };
        page.into_string()
    }
}

/// Returns the form in which a content security policy names an inline script or style.
fn source_hash(source: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(source)))
}

/// Escapes JSON so that nothing in it can end the element that contains it, or begin a comment.
fn inert_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

// The form that filters the rows of a page. `filter.js` applies it.

/// Returns the form, with these tools and states to choose from.
pub(crate) fn filter_form<'a>(
    tools: impl Iterator<Item = &'a str>,
    states: impl Iterator<Item = &'static str>,
) -> Markup {
    let mut tools: Vec<String> = tools.map(visible_text).collect();
    tools.sort_unstable();
    tools.dedup();
    html! {
        form #filter role="search" {
            label { "Tool " select name="tool" {
                option value="" { "all" }
                @for tool in &tools { option value=(tool) { (tool) } }
            } }
            label { "State " select name="state" {
                option value="" { "all" }
                @for state in states { option value=(state) { (state) } }
            } }
            label { "Text " input name="text" type="search" autocomplete="off"; }
            output name="shown" {}
        }
    }
}

// Text of models and tools, as a page shows it.

/// Escapes what can't be seen or would change the direction of the text around it. Unlike in a line on the terminal,
/// line breaks and tabs stay.
pub(crate) fn visible_text(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let end = part.trim_end_matches(['\n', '\t']).len();
        let (part, space) = part.split_at(end);
        visible += &escape(part.strip_suffix('\r').unwrap_or(part));
        visible += space;
    }
    visible
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(script: &'static str) -> String {
        Page {
            title: "</title><script>alert(1)</script>".to_owned(),
            body: html! { p { "<b>" } },
            data: r#"["</script><!--<script>"]"#.to_owned(),
            script,
            reload_after: None,
        }
        .into_html()
    }

    #[test]
    fn nothing_from_outside_becomes_markup() {
        let html = page("let x = 1 < 2;");
        assert_eq!(html.matches("<script").count(), 2, "{html}");
        assert_eq!(html.matches("</script").count(), 2, "{html}");
        assert!(html.contains("<p>&lt;b&gt;</p>"));
        assert!(html.contains("let x = 1 < 2;"), "a script is not escaped");
        assert!(html.contains(r#"["\u003c/script>"#));
    }

    /// Computed with `printf 'let x;' | openssl dgst -sha256 -binary | base64`.
    #[test]
    fn the_policy_names_the_script() {
        let hash = "sha256-0d16uaq56s5GjNyUV+TVNe6kCw90XFh4MjUbyKmlPjs=";
        assert!(page("let x;").contains(&format!("script-src '{hash}'")));
    }
}

#[cfg(test)]
mod frame_tests {
    use super::*;

    #[test]
    fn only_line_breaks_and_tabs_stay() {
        assert_eq!(visible_text("a\r\n\tb\n\n"), "a\n\tb\n\n");
        assert_eq!(
            visible_text("\u{202e}evil\x1b[2J\u{200b}\n"),
            "\\u202eevil\\x1b[2J\\u200b\n"
        );
    }
}
