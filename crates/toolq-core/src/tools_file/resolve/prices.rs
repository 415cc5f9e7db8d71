//! Resolves `prices` into whole millionths of a dollar, so that sums are exact.

use std::collections::BTreeMap;

use crate::tools_file::keys::{PriceFile, PriceNumber};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::types::{MicroUsd, ModelPrice, PriceTable};

/// A price of more dollars per million tokens than this is a mistake.
const MAX_PRICE_USD: f64 = 1e6;

/// Returns the token prices by model name.
pub(crate) fn resolve_prices(
    file: &Field<SpannedTable<PriceFile>>,
    diagnostics: &mut Diagnostics<'_>,
) -> PriceTable {
    let mut prices = BTreeMap::new();
    for (model, entry) in file.entries() {
        let price = &entry.value;
        for (field, key) in [(&price.input, "input"), (&price.output, "output")] {
            if field.is_missing() {
                diagnostics.error(
                    entry.key_span,
                    format!("the price of {model} has no `{key}`"),
                    "",
                    format!("add `{key}: …`, in US dollars per million tokens"),
                );
            }
        }
        let mut read =
            |field: &Field<PriceNumber>| Some(to_micro_usd(field.spanned()?, diagnostics));
        let (input, output) = (read(&price.input), read(&price.output));
        let price = ModelPrice {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            cache_read: read(&price.cache_read),
            cache_write: read(&price.cache_write),
        };
        prices.insert(model.to_owned(), price);
    }
    PriceTable(prices)
}

fn to_micro_usd(price: &Spanned<PriceNumber>, diagnostics: &mut Diagnostics<'_>) -> MicroUsd {
    let PriceNumber(usd) = price.value;
    if !(0.0..=MAX_PRICE_USD).contains(&usd) {
        diagnostics.error(
            price.span,
            format!("{usd} isn't a valid price"),
            "",
            "write US dollars per million tokens: `3.00`",
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
