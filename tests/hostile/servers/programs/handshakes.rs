//! Programs with which it is hard to agree on a version.

use serde_json::{Value, json};

use crate::hostile_servers;
use crate::servers::expectation::End::Fails;
use crate::servers::script::{legacy, modern};
use crate::servers::wire::{discovery, drain_stdin, initialization};

hostile_servers! {
    is_silent_in_the_probe => legacy().on_discover(|_, _| {});
    answers_the_probe_late => modern().on_discover(|wire, request| wire.kept.push(request.0.clone())).on_initialize(|wire, request| {
        wire.refuse(request, -32022, "unsupported protocol version");
        let probe = crate::servers::wire::Request(wire.kept.remove(0));
        wire.answer(&probe, discovery());
    });
    is_silent_in_initialize => legacy().keys("startup: 1s").on_initialize(|_, _| {}).all(Fails("wasn't ready after 1s"));
    never_reads => legacy().keys("startup: 1s").at_start(|_| loop { std::thread::sleep(std::time::Duration::from_mins(1)) }).all(Fails("wasn't ready after 1s"));
    says_nothing_and_reads_all => legacy().keys("startup: 1s").at_start(|_| drain_stdin()).all(Fails("wasn't ready after 1s"));
    talks_only_noise => legacy().keys("startup: 1s").at_start(|wire| loop {
        wire.line("still starting");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }).all(Fails("wasn't ready after 1s"));
    refuses_the_probe_with_a_null_id => legacy().keys("startup: 4s").on_discover(|wire, _| {
        wire.respond(&Value::Null, json!({"error": {"code": -32600, "message": "not initialized"}}));
    });
    refuses_the_probe_with_a_text => legacy().keys("startup: 4s").on_discover(|wire, request| {
        wire.respond(request.id(), json!({"error": "what?"}));
    });
    answers_the_probe_with_nothing => legacy().keys("startup: 4s").on_discover(|wire, request| wire.answer(request, json!({})));
    speaks_both_eras_at_once => modern().on_discover(|wire, request| {
        wire.answer_discover(request);
        wire.respond(&json!(1), json!({"result": initialization("2025-11-25")}));
    });
    initializes_before_it_is_asked => legacy().at_start(|wire| wire.respond(&json!(1), json!({"result": initialization("2024-11-05")})));
    supports_only_the_older_era => legacy().on_discover(|wire, request| {
        wire.answer(request, json!({"supportedVersions": ["2025-11-25", "1999-01-01"]}));
    });
    supports_no_version => legacy().on_discover(|wire, request| {
        wire.answer(request, json!({"supportedVersions": []}));
    });
    supports_an_unknown_version => legacy().on_discover(|wire, request| {
        wire.respond(request.id(), json!({"error": {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01"]}}}));
    });
    initializes_an_unknown_version => legacy().on_initialize(|wire, request| wire.answer(request, initialization("2099-01-01")))
        .all(Fails("2099-01-01"));
    initializes_the_modern_version => legacy().on_initialize(|wire, request| wire.answer(request, initialization("2026-07-28")))
        .all(Fails("2026-07-28"));
    initializes_no_version => legacy().on_initialize(|wire, request| wire.answer(request, json!({}))).all(Fails("protocolVersion"));
    initializes_with_null => legacy().on_initialize(|wire, request| wire.respond(request.id(), json!({"result": null}))).all(Fails("can't be read"));
    refuses_initialize => legacy().on_initialize(|wire, request| wire.refuse(request, -32603, "license expired"))
        .all(Fails("license expired"));
    initializes_twice => legacy().on_initialize(|wire, request| {
        wire.answer_initialize(request);
        wire.answer(request, initialization("2024-11-05"));
        wire.refuse(request, -1, "no");
    });
    introduces_itself_at_length => legacy().on_initialize(|wire, request| {
        let mut result = initialization("2025-11-25");
        result["serverInfo"] = json!({"name": "\u{1b}[2J name".repeat(1 << 18), "version": "1".repeat(1 << 20)});
        wire.answer(request, result);
    });
    introduces_itself_oddly => legacy().keys("startup: 4s").on_initialize(|wire, request| {
        wire.answer(request, json!({"protocolVersion": "2025-11-25", "serverInfo": "me", "capabilities": 5}));
    });
}
