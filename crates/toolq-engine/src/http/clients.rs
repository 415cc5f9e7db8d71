//! The HTTP clients of a run, each made when the first request needs it. A client keeps its connections for the next
//! request.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::redirect::{self, Policy};
use reqwest::{Client, Proxy, Request};

use crate::http::error;
use crate::http::resolver::{Lookup, Resolver};
use toolq_core::os::Environment;
use toolq_core::types::{Draft, HttpBacking, Outcome, Part, Template};

/// The longest time to reach a server in.
const LONGEST_DIAL: Duration = Duration::from_secs(10);

/// Clients by what they differ in.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Idle connections that each keeps to a host.
    idle: usize,
    resolver: Resolver,
    made: Mutex<HashMap<Kind, Client>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    redirects: u32,
    proxy: Option<String>,
    /// Certificates are only read where a connection can need them.
    tls: bool,
    /// The input chose the host, so that only public addresses are connected to.
    public_only: bool,
    /// How long it may take to reach the server: less than an attempt may take, so that a request which was never sent
    /// is known not to be.
    dial: Duration,
}

impl Clients {
    pub(crate) fn new(jobs: NonZeroUsize, resolver: Resolver) -> Self {
        Self {
            idle: jobs.get(),
            resolver,
            made: Mutex::default(),
        }
    }

    /// The client for a request of `backing` whose attempts may take `after`.
    ///
    /// # Errors
    /// How the call ends because there can be none.
    pub(crate) fn get(
        &self,
        request: &Request,
        backing: &HttpBacking,
        after: Duration,
        environment: &Environment,
    ) -> Result<Client, Outcome> {
        let proxy = backing
            .proxy
            .as_ref()
            .map(|proxy| resolve(proxy, environment))
            .transpose()?;
        let kind = Kind {
            redirects: backing.redirects,
            tls: request.url().scheme() == "https"
                || proxy
                    .as_ref()
                    .is_some_and(|proxy| proxy.starts_with("https:")),
            public_only: backing.hosts.is_some(),
            dial: (after * 3 / 4).min(LONGEST_DIAL),
            proxy,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&kind) {
            return Ok(client.clone());
        }
        let client = kind.client(self.idle, &self.resolver).map_err(|error| {
            let origin = request.url().origin().ascii_serialization();
            error::unbuilt(origin, error::cause(&error))
        })?;
        made.insert(kind, client.clone());
        Ok(client)
    }
}

impl Kind {
    fn client(&self, idle: usize, resolver: &Resolver) -> reqwest::Result<Client> {
        let lookup = Lookup {
            resolver: resolver.clone(),
            public_only: self.public_only,
        };
        // Another provider may stand already; then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Proxies of the environment are ignored: they would carry keys to whoever set a variable.
        let builder = Client::builder()
            .no_proxy()
            .http1_only()
            .referer(false)
            .dns_resolver(lookup)
            .connect_timeout(self.dial)
            .redirect(self.redirects())
            .pool_max_idle_per_host(idle)
            .user_agent(concat!("toolq/", env!("CARGO_PKG_VERSION")));
        let builder = if self.tls {
            builder
        } else {
            builder.tls_certs_only([])
        };
        match &self.proxy {
            Some(proxy) => builder.proxy(Proxy::all(proxy)?).build(),
            None => builder.build(),
        }
    }

    /// Follows as many redirects as declared, and none to another origin: what is said to one server is not meant for
    /// another. The redirect that isn't followed is the response.
    fn redirects(&self) -> Policy {
        if self.redirects == 0 {
            return Policy::none();
        }
        let most = self.redirects as usize;
        Policy::custom(move |attempt: redirect::Attempt<'_>| {
            let from = attempt.previous();
            let stays = from
                .last()
                .is_some_and(|from| from.origin() == attempt.url().origin());
            if stays && from.len() <= most {
                attempt.follow()
            } else {
                attempt.stop()
            }
        })
    }
}

/// A template of the file that holds no value of an input.
fn resolve(template: &Template, environment: &Environment) -> Result<String, Outcome> {
    let pieces = template.parts.iter().filter_map(Part::as_piece);
    let resolved = Draft(pieces.collect()).resolve(&|name| environment.get(name));
    resolved.map_err(Outcome::MissingVariable)
}
