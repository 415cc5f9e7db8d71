//! Resolves `max_parallel`, `rate` and `hosts`: when calls may start.

use std::num::{NonZeroU32, NonZeroUsize};

use crate::tools_file::keys::{HostFile, RateForm, RateText};
use crate::tools_file::resolve::diagnostics::Diagnostics;
use crate::tools_file::spanned::{Field, Spanned, SpannedTable};
use crate::types::{HostLimits, StartLimits, StartRate};
use crate::url::parse_host_name_pattern;

/// Reports limits that would let nothing start. Defaults are checked once, where they are written.
pub(crate) fn check_start_limits(
    max_parallel: &Field<u32>,
    rate: &Field<RateForm>,
    diagnostics: &mut Diagnostics<'_>,
) {
    check_not_zero("max_parallel", max_parallel, diagnostics);
    let Some(Spanned {
        value: RateForm::Table(table),
        key_span,
        ..
    }) = rate.spanned()
    else {
        return;
    };
    check_not_zero("burst", &table.burst, diagnostics);
    if table.per.is_missing() {
        diagnostics.error(
            *key_span,
            "`rate` has no `per`",
            "",
            "write `rate: {per: 10/s, burst: 20}`, or `rate: 10/s`",
        );
    }
}

fn check_not_zero(key: &str, field: &Field<u32>, diagnostics: &mut Diagnostics<'_>) {
    if let Some(zero) = field.spanned().filter(|field| field.value == 0) {
        diagnostics.error(
            zero.span,
            format!("`{key}` would let no call start"),
            "at least 1",
            "leave it out for no limit",
        );
    }
}

/// Returns the limits that two keys declare.
pub(crate) fn resolve_start_limits(
    max_parallel: &Field<u32>,
    rate: &Field<RateForm>,
) -> StartLimits {
    StartLimits {
        max_parallel: max_parallel
            .value()
            .and_then(|calls| NonZeroUsize::new(*calls as usize)),
        rate: rate.value().and_then(resolve_rate),
    }
}

fn resolve_rate(form: &RateForm) -> Option<StartRate> {
    let (RateText { starts, period }, burst) = match form {
        RateForm::Text(rate) => (*rate, None),
        RateForm::Table(table) => (*table.per.value()?, table.burst.value().copied()),
    };
    Some(StartRate {
        starts,
        period,
        burst: burst.and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN),
    })
}

/// Returns the limits of hosts, in the order of the file.
pub(crate) fn resolve_hosts(
    file: &Field<SpannedTable<HostFile>>,
    diagnostics: &mut Diagnostics<'_>,
) -> Vec<HostLimits> {
    let mut hosts = Vec::new();
    for (name, entry) in file.entries() {
        let HostFile { max_parallel, rate } = &entry.value;
        check_start_limits(max_parallel, rate, diagnostics);
        if max_parallel.is_missing() && rate.is_missing() {
            let hint = format!("write `{name}: {{rate: 10/s}}`, or `max_parallel`");
            diagnostics.error(entry.key_span, "the host has no limits", "", hint);
        }
        match parse_host_name_pattern(name) {
            Ok(pattern) => hosts.push(HostLimits {
                pattern,
                limits: resolve_start_limits(max_parallel, rate),
            }),
            Err((message, hint)) => diagnostics.error(entry.key_span, message, "", hint),
        }
    }
    hosts
}
