//! The patterns of bars.

use maud::{Markup, html};

/// Returns the patterns that tell bars apart without color.
pub(crate) fn bar_patterns() -> Markup {
    let pattern = |id: &str, path: &str| {
        html! {
            pattern id=(id) width="6" height="6" patternUnits="userSpaceOnUse" {
                rect width="6" height="6" {}
                path d=(path) {}
            }
        }
    };
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            defs {
                (pattern("hatched", "M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2"))
                (pattern("dotted", "M2,3 h2"))
            }
        }
    }
}
