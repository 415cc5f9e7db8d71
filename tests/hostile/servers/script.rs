//! A hostile server: what it does in place of what a decent one would, and how its calls must end.

use crate::servers::expectation::{Ends, Settings};
use crate::servers::http_wire::HttpWire;
use crate::servers::wire::{Request, Wire};

/// What a program does with a message.
pub type Action = fn(&mut Wire, &Request);
/// What a server over HTTP does with a request.
pub type HttpAction = fn(&mut HttpWire, &Request);

/// A hostile server.
#[derive(Clone, Copy)]
pub struct HostileServer {
    pub name: &'static str,
    pub behavior: Behavior,
    pub ends: Ends,
    pub settings: Settings,
}

/// How a server is reached, and what it does.
#[derive(Clone, Copy)]
pub enum Behavior {
    Program(Script),
    Endpoint(HttpScript),
}

/// What a program does at each step. Steps that a row doesn't name are those of a decent server.
#[derive(Clone, Copy)]
pub struct Script {
    pub is_modern: bool,
    pub at_start: fn(&mut Wire),
    pub on_discover: Action,
    pub on_initialize: Action,
    pub on_list: Action,
    pub on_call: Action,
    pub on_other: Action,
    pub at_end: fn(&mut Wire),
}

/// What a server over HTTP does at each step.
#[derive(Clone, Copy)]
pub struct HttpScript {
    pub is_modern: bool,
    pub on_handshake: HttpAction,
    pub on_list: HttpAction,
    pub on_call: HttpAction,
    pub on_get: HttpAction,
}

/// A program of the legacy era that does nothing wrong yet.
pub const fn legacy() -> HostileServer {
    HostileServer {
        name: "",
        behavior: Behavior::Program(Script {
            is_modern: false,
            at_start: |_| {},
            on_discover: Wire::answer_discover,
            on_initialize: Wire::answer_initialize,
            on_list: Wire::answer_list,
            on_call: Wire::answer_call,
            on_other: |_, _| {},
            at_end: |_| {},
        }),
        ends: Ends::SERVED,
        settings: Settings::DEFAULT,
    }
}

/// A program of the modern era that does nothing wrong yet.
pub const fn modern() -> HostileServer {
    legacy().with_script(Script {
        is_modern: true,
        ..legacy().script()
    })
}

/// A server over HTTP of the modern era that does nothing wrong yet.
pub const fn modern_endpoint() -> HostileServer {
    HostileServer {
        behavior: Behavior::Endpoint(HttpScript {
            is_modern: true,
            on_handshake: HttpWire::answer_handshake,
            on_list: HttpWire::answer_list,
            on_call: HttpWire::answer_call,
            on_get: HttpWire::refuse_get,
        }),
        ..legacy()
    }
}

/// A server over HTTP of the legacy era that does nothing wrong yet.
pub const fn legacy_endpoint() -> HostileServer {
    let server = modern_endpoint();
    let script = HttpScript {
        is_modern: false,
        ..server.http_script()
    };
    HostileServer {
        behavior: Behavior::Endpoint(script),
        ..server
    }
}

impl HostileServer {
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub const fn script(&self) -> Script {
        match self.behavior {
            Behavior::Program(script) => script,
            Behavior::Endpoint(_) => panic!("it isn't a program"),
        }
    }

    pub const fn http_script(&self) -> HttpScript {
        match self.behavior {
            Behavior::Endpoint(script) => script,
            Behavior::Program(_) => panic!("it isn't reached over HTTP"),
        }
    }

    pub const fn with_script(self, script: Script) -> Self {
        Self {
            behavior: Behavior::Program(script),
            ..self
        }
    }

    pub const fn with_http_script(self, script: HttpScript) -> Self {
        Self {
            behavior: Behavior::Endpoint(script),
            ..self
        }
    }

    pub const fn at_start(self, at_start: fn(&mut Wire)) -> Self {
        let script = self.script();
        self.with_script(Script { at_start, ..script })
    }

    pub const fn on_discover(self, on_discover: Action) -> Self {
        let script = self.script();
        self.with_script(Script {
            on_discover,
            ..script
        })
    }

    pub const fn on_initialize(self, on_initialize: Action) -> Self {
        let script = self.script();
        self.with_script(Script {
            on_initialize,
            ..script
        })
    }

    pub const fn on_list(self, on_list: Action) -> Self {
        let script = self.script();
        self.with_script(Script { on_list, ..script })
    }

    pub const fn on_call(self, on_call: Action) -> Self {
        let script = self.script();
        self.with_script(Script { on_call, ..script })
    }

    pub const fn on_other(self, on_other: Action) -> Self {
        let script = self.script();
        self.with_script(Script { on_other, ..script })
    }

    pub const fn at_end(self, at_end: fn(&mut Wire)) -> Self {
        let script = self.script();
        self.with_script(Script { at_end, ..script })
    }

    pub const fn on_handshake_request(self, on_handshake: HttpAction) -> Self {
        let script = self.http_script();
        self.with_http_script(HttpScript {
            on_handshake,
            ..script
        })
    }

    pub const fn on_call_request(self, on_call: HttpAction) -> Self {
        let script = self.http_script();
        self.with_http_script(HttpScript { on_call, ..script })
    }

    pub const fn on_get(self, on_get: HttpAction) -> Self {
        let script = self.http_script();
        self.with_http_script(HttpScript { on_get, ..script })
    }
}

/// Declares servers by their names.
#[macro_export]
macro_rules! hostile_servers {
    ($($name:ident => $server:expr;)*) => {
        /// The servers of this kind.
        pub const SERVERS: &[$crate::servers::script::HostileServer] = &[$($server.named(stringify!($name))),*];
    };
}
