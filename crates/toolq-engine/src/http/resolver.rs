//! Resolves host names. If the input chose the name, the lookup itself refuses addresses that aren't public. The client
//! connects to the result of this very lookup, so that a second one can't return other addresses (DNS rebinding).

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use toolq_core::url::is_public;

/// A pending lookup.
type AddressFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names to addresses. Tests provide their own.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(String) -> AddressFuture + Send + Sync>);

impl Resolver {
    /// Creates the resolver of the system, which uses its hosts file and name servers.
    pub fn system() -> Self {
        Self::new(|name| async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }

    /// Creates a resolver from a function.
    pub fn new<F>(resolve: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self(Arc::new(move |name| Box::pin(resolve(name))))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// The resolver of one HTTP client.
#[derive(Debug)]
pub(crate) struct ClientResolver {
    pub(crate) resolver: Resolver,
    pub(crate) public_only: bool,
}

/// A name that must not be connected to. One non-public address is enough: a name server that returns both kinds is
/// most likely after that one.
#[derive(Debug, thiserror::Error)]
#[error("{0} resolves to an address that is not public")]
pub(crate) struct NonPublicAddress(String);

/// A name that can't be resolved.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct LookupError(io::Error);

impl Resolve for ClientResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (name, public_only) = (name.as_str().to_owned(), self.public_only);
        let lookup = (self.resolver.0)(name.clone());
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
