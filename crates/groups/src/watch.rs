//! Resolves the names of a group again and again: a task for each name, which belongs to the configuration of the group.

use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use weir_http::hold::dns::trouble::Trouble;
use weir_http::hold::dns::{self, Resolver};
use weir_http::hold::worker::{Generation, Worker};
use weir_net::log::{self, Level};
use weir_net::{Instant, clock, timer};
use weir_wire::dns::Code;

use crate::{Live, MemberKind, Named, Parts, lock};

/// How long weir believes that a name does not exist, without `valid=` (nginx: 10 s).
const GONE: Duration = Duration::from_secs(10);

/// The shortest pause between two queries for one name.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Resolves the names of all groups of a configuration that no other worker resolves, while it is in force.
pub fn watch<P: Parts>(worker: &Rc<Worker>, generation: &Rc<Generation>) {
    let groups = P::declared(&generation.conf).groups.iter();
    for live in groups.filter_map(|upstream| upstream.live.as_ref()) {
        let Some((servers, timeout)) = live.resolver.get() else { continue };
        for id in live.take_unwatched() {
            let watch = Watch {
                worker: worker.clone(),
                generation: Rc::downgrade(generation),
                live: live.clone(),
                client: dns::client(generation, servers),
                timeout: *timeout,
                id,
            };
            weir_net::worker::spawn(watch.run());
        }
    }
}

impl<P: Parts> Live<P> {
    /// The names that no worker resolves yet; the caller must resolve them.
    fn take_unwatched(&self) -> Vec<u32> {
        let mut known = lock(&self.known);
        let known = &mut *known;
        let named = known.members.list.iter().filter(|member| matches!(member.kind, MemberKind::Named(..)));
        named.map(|member| member.id).filter(|id| known.watched.insert(*id)).collect()
    }

    fn named(&self, id: u32) -> Option<Named> {
        let known = lock(&self.known);
        known.members.list.iter().find(|member| member.id == id).and_then(|member| match &member.kind {
            MemberKind::Named(named, _) => Some(named.clone()),
            MemberKind::Fixed(_) => None,
        })
    }
}

/// One name to resolve.
struct Watch<P: Parts> {
    worker: Rc<Worker>,
    /// Weak, because the task sleeps.
    generation: Weak<Generation>,
    live: Arc<Live<P>>,
    client: Rc<Resolver>,
    timeout: Duration,
    id: u32,
}

impl<P: Parts> Watch<P> {
    async fn run(self) {
        while self.generation.upgrade().is_some_and(|generation| self.worker.goes_on(&generation)) {
            // The task ends when the API removes the server.
            let Some(named) = self.live.named(self.id) else { return };
            let pause = match self.ask(&named).await {
                Ok(until) => until.saturating_duration_since(clock::now()),
                Err(trouble) => {
                    complain(&named, trouble);
                    match trouble {
                        Trouble::Code(Code::NAME_ERROR) => {
                            self.live.learn(self.id, Vec::new());
                            self.client.servers().valid.unwrap_or(GONE)
                        }
                        Trouble::Code(_) | Trouble::TimedOut | Trouble::Busy => self.timeout,
                    }
                }
            };
            timer::sleep(pause.max(PAUSE_MIN)).await;
        }
    }

    async fn ask(&self, named: &Named) -> Result<Instant, Trouble> {
        let Named { host, service, .. } = named;
        let resolved = match service {
            None => self.client.addresses(host, self.timeout).await?,
            Some(service) => {
                let missing = |name: &_, trouble| {
                    let what = format_args!(
                        "{name} could not be resolved {trouble} while resolving service {service} of {host}"
                    );
                    log::global(Level::Error, what);
                };
                self.client.service(host, service, self.timeout, missing).await?
            }
        };
        self.live.learn(self.id, resolved.places);
        Ok(resolved.until)
    }
}

fn complain(Named { host, service, .. }: &Named, trouble: Trouble) {
    match service {
        None => log::global(Level::Error, format_args!("{host} could not be resolved {trouble}")),
        Some(service) => {
            log::global(Level::Error, format_args!("service {service} of {host} could not be resolved {trouble}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{live_of, resolver};
    use serde_json::json;

    #[test]
    fn each_name_is_given_to_one_worker_until_the_api_removes_it() {
        let live = live_of(&["127.0.0.1:1"], &["a.test", "b.test"]);
        assert_eq!((live.take_unwatched(), live.take_unwatched()), (vec![1, 2], vec![]));
        live.set_resolver(resolver(), Duration::from_secs(1));
        live.add_server(&json!({"server": "c.test:8080"})).unwrap();
        assert_eq!(live.take_unwatched(), [3]);
        let shown = |id| live.named(id).map(|named| (named.host, named.port));
        assert_eq!([shown(0), shown(3)], [None, Some(("c.test".to_owned(), 8080))]);
        live.remove_server(3).unwrap();
        assert_eq!((shown(3), live.take_unwatched()), (None, vec![]));
    }
}
