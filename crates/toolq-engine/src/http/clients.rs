//! The HTTP clients of a run. Each is created when a request first needs it, and keeps its connections for later
//! requests.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::{self, Policy};
use reqwest::{Client, ClientBuilder, Proxy, Request, Response};
use url::Url;

use crate::environment::resolve_template;
use crate::http::error::{self, LookupError, NonPublicAddress};
use crate::settings::{EngineSettings, Resolver};
use toolq_core::types::{HttpBacking, Outcome};
use toolq_core::url::is_public;

/// The longest time that connecting to a server may take.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The HTTP clients of a run, by the settings in which they differ.
#[derive(Debug)]
pub(crate) struct HttpClients {
    settings: Arc<EngineSettings>,
    clients: Mutex<HashMap<ClientKey, Client>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ClientKey {
    max_redirects: u32,
    proxy: Option<String>,
    /// Whether the client loads root certificates: only if a connection may need them.
    tls: bool,
    /// The input chooses the host, so only public addresses are connected to.
    public_only: bool,
    /// How many connections are kept for later requests. A server may close one at any time, so that it isn't known whether it
    /// has read the next request.
    max_idle_per_host: usize,
    /// Shorter than the timeout of an attempt, so that a request that was never sent is known not to have been.
    connect_timeout: Duration,
}

impl HttpClients {
    pub(crate) fn new(settings: Arc<EngineSettings>) -> Self {
        Self {
            settings,
            clients: Mutex::default(),
        }
    }

    /// Returns the client for a request of `backing` whose attempts may take `attempt_timeout`, and which may go out on a
    /// connection that is there already if it `may_repeat`.
    ///
    /// # Errors
    /// The outcome of the call, because no such client can be created.
    pub(crate) fn get(
        &self,
        request: &Request,
        backing: &HttpBacking,
        (attempt_timeout, may_repeat): (Duration, bool),
    ) -> Result<Client, Outcome> {
        let proxy = backing
            .proxy
            .as_ref()
            .map(|proxy| resolve_template(proxy, &self.settings.environment))
            .transpose()?;
        let key = ClientKey {
            max_redirects: backing.max_redirects,
            tls: request.url().scheme() == "https"
                || proxy
                    .as_ref()
                    .is_some_and(|proxy| proxy.starts_with("https:")),
            public_only: backing.allowed_hosts.is_some(),
            max_idle_per_host: if may_repeat {
                self.settings.jobs.get()
            } else {
                0
            },
            connect_timeout: (attempt_timeout * 3 / 4).min(MAX_CONNECT_TIMEOUT),
            proxy,
        };
        self.get_by_key(key, request.url())
    }

    /// Returns a client without redirects and proxies, for the requests to a server of tools or a model, which may take `timeout`.
    ///
    /// # Errors
    /// As for [`Self::get`].
    pub(crate) fn get_plain(&self, url: &Url, timeout: Duration) -> Result<Client, Outcome> {
        let key = ClientKey {
            max_redirects: 0,
            proxy: None,
            tls: url.scheme() == "https",
            public_only: false,
            max_idle_per_host: self.settings.jobs.get(),
            connect_timeout: (timeout * 3 / 4).min(MAX_CONNECT_TIMEOUT),
        };
        self.get_by_key(key, url)
    }

    fn get_by_key(&self, key: ClientKey, url: &Url) -> Result<Client, Outcome> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = key.build_client(&self.settings.resolver).map_err(|error| {
            let origin = url.origin().ascii_serialization();
            error::build_failure(origin, error::root_cause(&error))
        })?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

impl ClientKey {
    fn build_client(&self, resolver: &Resolver) -> reqwest::Result<Client> {
        let client_resolver = ClientResolver {
            resolver: resolver.clone(),
            public_only: self.public_only,
        };
        let builder = http_client_builder(self.tls)
            .dns_resolver(client_resolver)
            .connect_timeout(self.connect_timeout)
            .redirect(self.redirect_policy())
            .pool_max_idle_per_host(self.max_idle_per_host);
        match &self.proxy {
            Some(proxy) => builder.proxy(Proxy::all(proxy)?).build(),
            None => builder.build(),
        }
    }

    /// Follows as many redirects as declared, but only within the same origin: another origin must not see the request.
    /// A redirect that isn't followed is the response.
    fn redirect_policy(&self) -> Policy {
        if self.max_redirects == 0 {
            return Policy::none();
        }
        let max = self.max_redirects as usize;
        Policy::custom(move |attempt: redirect::Attempt<'_>| {
            let previous = attempt.previous();
            let same_origin = previous
                .last()
                .is_some_and(|from| from.origin() == attempt.url().origin());
            if same_origin && previous.len() <= max {
                let _ = IS_REDIRECTED.try_with(|is_redirected| is_redirected.set(true));
                attempt.follow()
            } else {
                attempt.stop()
            }
        })
    }
}

tokio::task_local! {
    /// Whether the request that a task is sending was redirected. A response has its address, but two may have the same.
    static IS_REDIRECTED: Cell<bool>;
}

/// Sends a request. Returns also whether it was redirected.
pub(crate) async fn send(client: Client, request: Request) -> (reqwest::Result<Response>, bool) {
    let sent = async { (client.execute(request).await, IS_REDIRECTED.with(Cell::get)) };
    IS_REDIRECTED.scope(Cell::new(false), sent).await
}

/// Returns the settings that all HTTP clients of toolq share. A client without `tls` loads no certificates. By default,
/// redirects aren't followed.
pub fn http_client_builder(tls: bool) -> ClientBuilder {
    // If a provider is already installed, that one is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Ignore the proxies of the environment: anyone who can set a variable could intercept API keys.
    let builder = Client::builder()
        .no_proxy()
        .http1_only()
        .referer(false)
        .redirect(Policy::none())
        .user_agent(concat!("toolq/", env!("CARGO_PKG_VERSION")));
    if tls {
        builder
    } else {
        builder.tls_certs_only([])
    }
}

// Resolves host names. If the input chose the name, the lookup itself refuses addresses that aren't public. The client
// connects to the result of this very lookup, so that a second one can't return other addresses (DNS rebinding).

/// The resolver of one HTTP client.
#[derive(Debug)]
pub(crate) struct ClientResolver {
    pub(crate) resolver: Resolver,
    pub(crate) public_only: bool,
}

impl Resolve for ClientResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (name, public_only) = (name.as_str().to_owned(), self.public_only);
        let lookup = self.resolver.look_up(name.clone());
        Box::pin(async move {
            let addresses = lookup.await.map_err(LookupError)?;
            if public_only && !addresses.iter().copied().all(is_public) {
                return Err(NonPublicAddress(name).into());
            }
            let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn lookup_addresses(resolver: &ClientResolver) -> Result<Vec<SocketAddr>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let addresses = runtime.block_on(resolver.resolve("flips.example".parse().unwrap()));
        addresses
            .map(Iterator::collect)
            .map_err(|error| error.to_string())
    }

    /// A name may resolve to a public address first and to a private one later (DNS rebinding).
    #[test]
    fn every_lookup_is_checked_for_public_addresses() {
        let answers: [&[&str]; 4] = [
            &["93.184.216.34", "2606:2800:220:1::1"],
            &["10.0.0.1"],
            &["93.184.216.34", "127.0.0.1"],
            &["::ffff:93.184.216.34"],
        ];
        let lookups = AtomicUsize::new(0);
        let resolver = Resolver::new(move |_| {
            let answer = answers[lookups.fetch_add(1, Ordering::Relaxed) % answers.len()];
            let answer = answer.iter().map(|ip| ip.parse().unwrap()).collect();
            std::future::ready(Ok(answer))
        });
        let mut client_resolver = ClientResolver {
            resolver,
            public_only: true,
        };
        assert_eq!(lookup_addresses(&client_resolver).unwrap().len(), 2);
        for _ in 1..answers.len() {
            assert_eq!(
                lookup_addresses(&client_resolver).unwrap_err(),
                "flips.example resolves to an address that is not public"
            );
        }
        client_resolver.public_only = false;
        for answer in answers {
            assert_eq!(
                lookup_addresses(&client_resolver).unwrap().len(),
                answer.len()
            );
        }
    }
}
