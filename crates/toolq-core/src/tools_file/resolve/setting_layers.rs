//! Layers of settings: a value of an upper layer hides that of a lower one. Tables are layered key by key.

use crate::tools_file::keys::{
    Defaults, LimitsFile, RetryFile, SandboxForm, SandboxTable, TimeoutForm, TimeoutTable, ToolFile,
};
use crate::tools_file::spanned::{Field, Spanned};

/// Returns the settings of `upper`, with those that it lacks taken from `lower`.
pub(crate) fn layer(upper: &Defaults, lower: &Defaults) -> Defaults {
    Defaults {
        approve: upper.approve.or(&lower.approve),
        max_parallel: upper.max_parallel.or(&lower.max_parallel),
        rate: upper.rate.or(&lower.rate),
        timeout: layer_table(&upper.timeout, &lower.timeout, layer_timeouts),
        output: upper.output.or(&lower.output),
        max_output: upper.max_output.or(&lower.max_output),
        max_saved: upper.max_saved.or(&lower.max_saved),
        retry: layer_table(&upper.retry, &lower.retry, layer_retries),
        on_failure: upper.on_failure.or(&lower.on_failure),
        on_doubt: upper.on_doubt.or(&lower.on_doubt),
        pause_after_failures: upper.pause_after_failures.or(&lower.pause_after_failures),
        coerce: upper.coerce.or(&lower.coerce),
        leftovers: upper.leftovers.or(&lower.leftovers),
        limits: layer_table(&upper.limits, &lower.limits, layer_limits),
        // Only the file's own `defaults` have these; `CommandDefaults` resolves them.
        env: Field::Missing,
        pass_env: Field::Missing,
        cwd: Field::Missing,
        sandbox: layer_table(&upper.sandbox, &lower.sandbox, layer_sandboxes),
        wrapper: Field::Missing,
    }
}

/// Returns the names of the settings that a layer has.
pub(crate) fn present_keys(layer: &Defaults) -> impl Iterator<Item = &'static str> {
    let keys = [
        ("approve", layer.approve.is_missing()),
        ("max_parallel", layer.max_parallel.is_missing()),
        ("rate", layer.rate.is_missing()),
        ("timeout", layer.timeout.is_missing()),
        ("output", layer.output.is_missing()),
        ("max_output", layer.max_output.is_missing()),
        ("max_saved", layer.max_saved.is_missing()),
        ("retry", layer.retry.is_missing()),
        ("on_failure", layer.on_failure.is_missing()),
        ("on_doubt", layer.on_doubt.is_missing()),
        (
            "pause_after_failures",
            layer.pause_after_failures.is_missing(),
        ),
        ("coerce", layer.coerce.is_missing()),
        ("leftovers", layer.leftovers.is_missing()),
        ("limits", layer.limits.is_missing()),
        ("sandbox", layer.sandbox.is_missing()),
    ];
    keys.into_iter()
        .filter(|(_, is_missing)| !is_missing)
        .map(|(key, _)| key)
}

/// Whether a tool has the setting `key` itself. The keys of its `command` aren't looked at.
pub(crate) fn has_own_key(tool: &ToolFile, key: &str) -> bool {
    let own = Defaults {
        approve: tool.approve.clone(),
        max_parallel: tool.max_parallel.clone(),
        rate: tool.rate.clone(),
        timeout: tool.timeout.clone(),
        output: tool.output.clone(),
        max_output: tool.max_output.clone(),
        max_saved: tool.max_saved.clone(),
        retry: tool.retry.clone(),
        on_failure: tool.on_failure.clone(),
        on_doubt: tool.on_doubt.clone(),
        pause_after_failures: tool.pause_after_failures.clone(),
        coerce: tool.coerce.clone(),
        sandbox: tool.sandbox.clone(),
        ..Defaults::default()
    };
    key == "effect" && !tool.effect.is_missing() || present_keys(&own).any(|present| present == key)
}

/// Layers two tables with `merge`, unless one of them is missing or invalid.
fn layer_table<T: Clone>(upper: &Field<T>, lower: &Field<T>, merge: fn(&T, &T) -> T) -> Field<T> {
    match (upper, lower) {
        (Field::Valid(above), Field::Valid(below)) => Field::Valid(Box::new(Spanned {
            value: merge(&above.value, &below.value),
            key_span: above.key_span,
            span: above.span,
        })),
        _ => upper.or(lower),
    }
}

/// Returns the sandbox of a tool or a server: its own, and where that leaves something out, that of the defaults.
pub(crate) fn layer_sandbox(own: &Field<SandboxForm>, defaults: &Defaults) -> Field<SandboxForm> {
    layer_table(own, &defaults.sandbox, layer_sandboxes)
}

fn layer_sandboxes(upper: &SandboxForm, lower: &SandboxForm) -> SandboxForm {
    let (SandboxForm::Table(above), SandboxForm::Table(below)) = (upper, lower) else {
        return upper.clone();
    };
    SandboxForm::Table(Box::new(SandboxTable {
        read: above.read.or(&below.read),
        write: above.write.or(&below.write),
        network: above.network.or(&below.network),
        missing: above.missing.or(&below.missing),
    }))
}

fn layer_timeouts(upper: &TimeoutForm, lower: &TimeoutForm) -> TimeoutForm {
    let (upper, lower) = (timeout_table(upper), timeout_table(lower));
    TimeoutForm::Table(TimeoutTable {
        after: upper.after.or(&lower.after),
        grace: upper.grace.or(&lower.grace),
        slow: upper.slow.or(&lower.slow),
        total: upper.total.or(&lower.total),
    })
}

fn timeout_table(form: &TimeoutForm) -> TimeoutTable {
    match form {
        TimeoutForm::Table(table) => table.clone(),
        TimeoutForm::Text(after) => TimeoutTable {
            after: Field::Valid(Box::new(Spanned {
                key_span: crate::types::Span::default(),
                span: crate::types::Span::default(),
                value: *after,
            })),
            ..TimeoutTable::default()
        },
    }
}

fn layer_retries(upper: &RetryFile, lower: &RetryFile) -> RetryFile {
    RetryFile {
        times: upper.times.or(&lower.times),
        on: upper.on.or(&lower.on),
        backoff: upper.backoff.or(&lower.backoff),
        max_backoff: upper.max_backoff.or(&lower.max_backoff),
    }
}

fn layer_limits(upper: &LimitsFile, lower: &LimitsFile) -> LimitsFile {
    LimitsFile {
        cpu: upper.cpu.or(&lower.cpu),
        memory: upper.memory.or(&lower.memory),
        files: upper.files.or(&lower.files),
        processes: upper.processes.or(&lower.processes),
        file_size: upper.file_size.or(&lower.file_size),
    }
}
