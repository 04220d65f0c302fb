//! Which client gets which configuration.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use weir_net::timer;

use super::{Beside, Generation, Worker};
use crate::hold::split::Coin;

impl Worker {
    /// The lane of a client with this address: the configuration for its next request or its next session. Only this function
    /// and [`Worker::lane_by`] choose one: a connection, a session and an exchange keep it until they end or ask again.
    #[inline]
    pub fn lane(&self, ip: impl FnOnce() -> Option<IpAddr>) -> Rc<Generation> {
        if let Some(beside) = &*self.beside.borrow()
            && beside.coin.of_address(ip()).is_some_and(|number| number < beside.coin.limit())
        {
            return beside.generation.clone();
        }
        self.main()
    }

    /// Another lane for a client that has `first`: its number by the coin decides. `None` if it has the right one already, or if
    /// `first` was chosen by its address.
    #[inline]
    pub fn lane_by(&self, first: &Rc<Generation>, number: impl FnOnce(&Coin) -> Option<u64>) -> Option<Rc<Generation>> {
        let beside = self.beside.borrow();
        let Beside { generation, coin } = beside.as_ref().filter(|beside| !beside.coin.key().is_early())?;
        let is_new = number(coin).is_some_and(|number| number < coin.limit());
        // A main configuration that was replaced meanwhile is still the right one for a request whose head it has read.
        if is_new == Rc::ptr_eq(first, generation) {
            return None;
        }
        Some(if is_new { generation.clone() } else { self.main() })
    }

    /// Whether a share of the clients has a configuration beside the main one.
    #[inline]
    pub fn is_split(&self) -> bool {
        self.beside.borrow().is_some()
    }

    /// Whether a configuration is the one beside the main one.
    pub fn is_beside(&self, generation: &Rc<Generation>) -> bool {
        self.beside.borrow().as_ref().is_some_and(|beside| Rc::ptr_eq(&beside.generation, generation))
    }

    /// The configuration whose settings hold for the whole process: places in the table, the ports of QUIC, the time
    /// for a shutdown. A client's configuration is [`Worker::lane`].
    #[inline]
    pub fn main(&self) -> Rc<Generation> {
        self.main.borrow().clone()
    }

    /// All configurations in force.
    pub fn in_force(&self) -> impl Iterator<Item = Rc<Generation>> {
        let main = self.main();
        let beside = self.beside.borrow().as_ref().map(|beside| beside.generation.clone());
        let other = beside.filter(|beside| !Rc::ptr_eq(beside, &main));
        std::iter::once(main).chain(other)
    }

    /// Whether work that belongs to a configuration goes on: the configuration is in force, and the worker serves.
    pub fn goes_on(&self, generation: &Rc<Generation>) -> bool {
        !self.is_draining() && self.in_force().any(|own| Rc::ptr_eq(&own, generation))
    }

    /// Throws the coin for clients, and gives both kinds the main configuration: a split of nothing.
    pub fn rehearse(&self, coin: Arc<Coin>) {
        let generation = self.main();
        self.beside.replace(Some(Beside { generation, coin }));
    }

    /// Gives all clients the main configuration, if the one beside it has this number or is the main one. Exchanges under way end
    /// with their own.
    pub fn join(self: &Rc<Self>, number: u32) {
        let main = self.main();
        let ends =
            |beside: &Beside| beside.generation.conf.generation == number || Rc::ptr_eq(&beside.generation, &main);
        if self.beside.borrow().as_ref().is_some_and(ends) {
            self.beside.take();
            self.changed();
        }
    }

    /// Lets the connections know that the configurations in force are others.
    pub(super) fn changed(self: &Rc<Self>) {
        for shared in self.connections.borrow().iter() {
            shared.tell();
        }
        self.end_in_time(&self.in_force().map(|generation| generation.conf.generation).collect::<Vec<_>>());
    }

    /// Ends the connections of today whose exchanges began with none of these configurations, after
    /// `worker_shutdown_timeout`.
    pub(super) fn end_in_time(self: &Rc<Self>, in_force: &[u32]) {
        let Some(timeout) = self.main().conf.main.process.shutdown_timeout else { return };
        // Configurations have numbers in the order of loading: a larger number is one that comes later.
        let newest = if self.is_draining() { u32::MAX } else { self.newest.get() };
        let (worker, kept) = (self.clone(), in_force.to_vec());
        weir_net::worker::spawn(async move {
            timer::sleep(timeout).await;
            let is_late = |number: u32| number <= newest && !kept.contains(&number);
            for shared in worker.connections.borrow().iter().filter(|shared| is_late(shared.generation.get())) {
                shared.end();
            }
        });
    }
}
