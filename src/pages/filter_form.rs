//! The form that filters the rows of a page. `filter.js` applies it.

use maud::{Markup, html};

use crate::pages::visible_text::visible_text;

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
