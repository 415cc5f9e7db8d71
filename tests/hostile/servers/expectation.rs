//! The calls that each server gets, and how they must end.

use crate::servers::script::HostileServer;

/// How a call must end.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// With the answer that a decent server gives.
    Served,
    /// With a result that has this in it.
    Says(&'static str),
    /// With an error that has this in it, and isn't in doubt.
    Fails(&'static str),
    /// Its timeout.
    TimesOut,
    /// It isn't known whether it had its effect. The text contains this.
    InDoubt(&'static str),
    /// In one of these ways: it depends on who is faster.
    OneOf(&'static [Self]),
}

/// How the calls must end, in their order. The first and the last one call a tool with which nothing is wrong.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    pub hello: End,
    /// Two calls of a `read` tool.
    pub look: End,
    /// A call of a `write` tool.
    pub pay: End,
    pub again: End,
}

impl Ends {
    pub const SERVED: Self = Self {
        hello: End::Served,
        look: End::Served,
        pay: End::Served,
        again: End::Served,
    };

    pub fn in_order(&self) -> [End; 5] {
        [self.hello, self.look, self.look, self.pay, self.again]
    }
}

/// What else is special about a server.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The calls that the server misbehaves in have a short timeout.
    pub is_impatient: bool,
    /// The `read` calls run at the same time.
    pub is_parallel: bool,
    /// `toolq servers lock` runs first.
    pub is_locked: bool,
    /// Keys of the server in tools.yaml.
    pub keys: &'static str,
    /// How many bytes toolq may need, at most.
    pub memory_limit: Option<u64>,
}

impl Settings {
    pub const DEFAULT: Self = Self {
        is_impatient: false,
        is_parallel: false,
        is_locked: false,
        keys: "startup: 100s",
        memory_limit: None,
    };
}

impl HostileServer {
    /// Sets how the calls that it misbehaves in end.
    pub const fn ends(self, look: End, pay: End) -> Self {
        let ends = Ends {
            look,
            pay,
            ..self.ends
        };
        Self { ends, ..self }
    }

    /// Sets how the first call ends.
    pub const fn hello(self, hello: End) -> Self {
        let ends = Ends { hello, ..self.ends };
        Self { ends, ..self }
    }

    /// Sets how the last call ends.
    pub const fn again(self, again: End) -> Self {
        let ends = Ends { again, ..self.ends };
        Self { ends, ..self }
    }

    /// Sets how every call ends.
    pub const fn all(self, end: End) -> Self {
        let ends = Ends {
            hello: end,
            look: end,
            pay: end,
            again: end,
        };
        Self { ends, ..self }
    }

    /// The calls that it misbehaves in time out.
    pub const fn times_out(self) -> Self {
        self.impatient()
            .ends(End::TimesOut, End::InDoubt("no complete response"))
    }

    pub const fn impatient(self) -> Self {
        let settings = Settings {
            is_impatient: true,
            ..self.settings
        };
        Self { settings, ..self }
    }

    pub const fn parallel(self) -> Self {
        let settings = Settings {
            is_parallel: true,
            ..self.settings
        };
        Self { settings, ..self }
    }

    pub const fn locked(self) -> Self {
        let settings = Settings {
            is_locked: true,
            ..self.settings
        };
        Self { settings, ..self }
    }

    pub const fn keys(self, keys: &'static str) -> Self {
        let settings = Settings {
            keys,
            ..self.settings
        };
        Self { settings, ..self }
    }

    pub const fn memory_limit(self, mebibytes: u64) -> Self {
        let settings = Settings {
            memory_limit: Some(mebibytes << 20),
            ..self.settings
        };
        Self { settings, ..self }
    }
}
