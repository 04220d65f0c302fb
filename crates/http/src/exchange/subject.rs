//! An exchange, or a session of `stream`, as families see it whose directives have the same meaning in both.

use std::fmt;
use std::rc::Rc;

use weir_net::SocketAddress;
use weir_net::log::Level;

use crate::exchange::Exchange;
use crate::exchange::conf::{Conf, Location};
use crate::hold::own::Own;
use crate::hold::worker::Worker;
use crate::text::template::Reads;

/// See the module.
pub trait Subject<'c>: Reads {
    /// The configuration that it began with.
    fn conf(&self) -> &'c Conf;

    /// The settings in force.
    fn place(&self) -> &'c Location;

    /// The worker.
    fn worker(&self) -> &'c Rc<Worker>;

    /// The client's address, as a trusted proxy reports it if there is one.
    fn remote(&self) -> &SocketAddress;

    /// The values that families keep with it.
    fn own(&mut self) -> &mut Own;

    /// Writes a line to the error log of its place.
    fn note(&mut self, level: Level, message: fmt::Arguments<'_>);
}

impl<'c> Subject<'c> for Exchange<'c> {
    fn conf(&self) -> &'c Conf {
        self.conf
    }

    fn place(&self) -> &'c Location {
        self.location
    }

    fn worker(&self) -> &'c Rc<Worker> {
        self.worker
    }

    fn remote(&self) -> &SocketAddress {
        Exchange::remote(self)
    }

    fn own(&mut self) -> &mut Own {
        &mut self.own
    }

    fn note(&mut self, level: Level, message: fmt::Arguments<'_>) {
        self.log(level, message);
    }
}
