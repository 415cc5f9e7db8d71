//! Names → the addresses that are connected to. Where the input chose the name, the same step that finds the addresses
//! refuses those that are not public: there is no second look-up that could find others.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use toolq_core::url::is_public;

/// An answer that is on its way.
type Answering = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// What addresses a name has, as a value: tests pass their own.
#[derive(Clone)]
pub struct Resolver(Arc<dyn Fn(String) -> Answering + Send + Sync>);

impl Resolver {
    /// The system's: its hosts file, its name servers.
    pub fn system() -> Self {
        Self::new(|name| async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    /// One of one's own.
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

/// The look-up of a client.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) resolver: Resolver,
    pub(crate) public_only: bool,
}

/// A name that may not be connected to. One address that is not public is enough: whoever answers with both means the
/// other.
#[derive(Debug, thiserror::Error)]
#[error("{0} has an address that is not public")]
struct NotPublic(String);

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (name, public_only) = (name.as_str().to_owned(), self.public_only);
        let answer = (self.resolver.0)(name.clone());
        Box::pin(async move {
            let addresses = answer.await?;
            if public_only && !addresses.iter().copied().all(is_public) {
                return Err(NotPublic(name).into());
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

    fn look_up(lookup: &Lookup) -> Result<Vec<SocketAddr>, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let found = runtime.block_on(lookup.resolve("flips.example".parse().unwrap()));
        found
            .map(Iterator::collect)
            .map_err(|error| error.to_string())
    }

    /// FAULTS 97: a name that is public when it is asked for and private when it is connected to.
    #[test]
    fn every_answer_is_judged() {
        let answers: [&[&str]; 4] = [
            &["93.184.216.34", "2606:2800:220:1::1"],
            &["10.0.0.1"],
            &["93.184.216.34", "127.0.0.1"],
            &["::ffff:93.184.216.34"],
        ];
        let asked = AtomicUsize::new(0);
        let resolver = Resolver::new(move |_| {
            let answer = answers[asked.fetch_add(1, Ordering::Relaxed) % answers.len()];
            let answer = answer.iter().map(|ip| ip.parse().unwrap()).collect();
            std::future::ready(Ok(answer))
        });
        let mut lookup = Lookup {
            resolver,
            public_only: true,
        };
        assert_eq!(look_up(&lookup).unwrap().len(), 2);
        for _ in 1..answers.len() {
            assert_eq!(
                look_up(&lookup).unwrap_err(),
                "flips.example has an address that is not public"
            );
        }
        lookup.public_only = false;
        for answer in answers {
            assert_eq!(look_up(&lookup).unwrap().len(), answer.len());
        }
    }
}
