//! A worker's regular look at its connections to upstreams, which are those of all configurations in force.

use std::rc::Rc;
use std::time::Duration;

use weir_http::hold::worker::{Generation, Worker};
use weir_net::timer;

use super::HttpParts;
use super::groups::{groups, share};

/// How often weir checks idle upstream connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// Starts the checks of a worker. When its connection table is full, the worker may close connections that the pools
/// keep.
pub fn start(worker: &Rc<Worker>) {
    worker.on_full(|generation| groups(generation).close_oldest());
    weir_net::worker::spawn(sweep(worker.clone()));
}

/// Begins with a configuration that a worker has just put in force.
pub fn watch(worker: &Rc<Worker>, generation: &Rc<Generation>) {
    share(worker, generation);
    weir_groups::watch::<HttpParts>(worker, generation);
}

async fn sweep(worker: Rc<Worker>) {
    loop {
        timer::sleep(SWEEP_EVERY).await;
        worker.board.places.set(worker.places_taken() as u64);
        for generation in worker.in_force() {
            groups(&generation).all().iter().for_each(|home| home.pool.sweep());
            // The API may have added names.
            weir_groups::watch::<HttpParts>(&worker, &generation);
            publish(&worker, &generation);
        }
    }
}

/// Publishes levels that only this thread can read.
fn publish(worker: &Worker, generation: &Generation) {
    for home in groups(generation).all().iter().filter(|home| home.is_used()) {
        let (upstream, idle) = (home.current(), home.pool.count_idle());
        for peer in 0..upstream.addresses.len() {
            let (_, cell) = upstream.peer(&worker.boards, peer);
            worker.board.peer(cell).idle.set(idle.get(upstream.id(peer)).copied().unwrap_or(0));
        }
    }
}
