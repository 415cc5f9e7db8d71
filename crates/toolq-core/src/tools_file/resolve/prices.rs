//! `prices` as written → whole millionths of a dollar, so that sums are exact.

use std::collections::BTreeMap;

use crate::tools_file::keys::{PriceFile, PriceNumber};
use crate::tools_file::resolve::diagnostics::Findings;
use crate::tools_file::spanned::{Placed, Setting, Table};
use crate::types::{MicroUsd, Price, Prices};

/// More than this for a million tokens is a mistake, in dollars.
const HIGHEST: f64 = 1e6;

/// What tokens cost, by the name of a model.
pub(crate) fn read(file: &Setting<Table<PriceFile>>, findings: &mut Findings<'_>) -> Prices {
    let mut prices = BTreeMap::new();
    for (model, entry) in file.entries() {
        let price = &entry.value;
        for (setting, key) in [(&price.input, "input"), (&price.output, "output")] {
            if setting.is_missing() {
                findings.error(
                    entry.key,
                    format!("the price of {model} has no `{key}`"),
                    "",
                    format!("add `{key}: …`, in US dollars for a million tokens"),
                );
            }
        }
        let mut read = |setting: &Setting<PriceNumber>| Some(micro(setting.given()?, findings));
        let (input, output) = (read(&price.input), read(&price.output));
        let price = Price {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cache_read: read(&price.cache_read),
            cache_write: read(&price.cache_write),
        };
        prices.insert(model.to_owned(), price);
    }
    Prices(prices)
}

fn micro(price: &Placed<PriceNumber>, findings: &mut Findings<'_>) -> MicroUsd {
    let PriceNumber(usd) = price.value;
    if !(0.0..=HIGHEST).contains(&usd) {
        findings.error(
            price.span,
            format!("{usd} is no price"),
            "",
            "write US dollars for a million tokens: `3.00`",
        );
        return 0;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1e12, checked above"
    )]
    let micro = (usd * 1e6).round() as MicroUsd;
    micro
}
