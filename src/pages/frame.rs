//! What all pages have in common: the head, the style, and a policy that only lets this page's own script run.

use data_encoding::BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::pages::visible_text::visible_text;

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
