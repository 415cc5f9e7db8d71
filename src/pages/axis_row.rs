//! The row with the times above bars.

use std::time::Duration;

use maud::{Markup, html};

use crate::pages::time_axis::TimeAxis;
use toolq_core::text::format_duration;

/// Marks that are further right have their times to the left of them, in percent.
const LAST_MARK_PERCENT: f64 = 90.0;

/// Returns the row. One that is `sticky` stays on the screen while the page is scrolled.
pub(crate) fn axis_row(axis: &TimeAxis, sticky: bool) -> Markup {
    html! {
        div.axis.sticky[sticky] aria-hidden="true" {
            svg {
                @for mark in axis.marks() {
                    @let at = format!("{:.2}%", mark.at);
                    @let time = format_duration(Duration::from_millis(mark.ms));
                    @if mark.is_gap {
                        text.gap x=(at) y="11" { "⋯" title { (time) " without a call" } }
                    } @else {
                        line x1=(at) x2=(at) y1="14" y2="20" {}
                        text x=(at) y="11" class=(if mark.at > LAST_MARK_PERCENT { "last" } else { "" }) { (time) }
                    }
                }
            }
        }
    }
}
