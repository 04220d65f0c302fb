//! Does the work of an exchange that would block the worker, on a thread of its own.

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::{Chore, Outcome, Resume};
use weir_http::exchange::walk;
use weir_http::hold::own::Owned;
use weir_net::aside;
use weir_net::log::Level;

/// Does the work, gives the exchange the result, and goes on with the walk.
pub async fn run(exchange: &mut Exchange<'_>, chore: Chore, resume: Resume) -> Outcome {
    match aside::run("weir-chore", chore.0).await {
        Ok(result) => {
            let result: Box<dyn Owned> = result;
            exchange.own.put_back(result);
            walk::resume(exchange, resume)
        }
        Err(error) => {
            exchange.log(Level::Error, format_args!("the work of this request could not be done: {error}"));
            Outcome::Status(503)
        }
    }
}
