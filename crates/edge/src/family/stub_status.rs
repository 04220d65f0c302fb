//! `stub_status`: connections and requests so far, in nginx's format.
//!
//! <https://nginx.org/en/docs/http/ngx_http_stub_status_module.html>

use std::fmt::Write;

use weir_http::exchange::Exchange;
use weir_http::exchange::phase::Next;
use weir_http::exchange::response_body::Body;
use weir_http::exchange::special;
use weir_http::exchange::variable::Variable;
use weir_http::hold::counters::{self, Counters};
use weir_http::read::directive::{Arity, Directive, LOCATION, SERVER};
use weir_http::read::families::Family;
use weir_wire::encode;

weir_http::settings! {}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "stub_status",
    &[Directive::new(
        "stub_status",
        SERVER.or(LOCATION),
        Arity::Between(0, 1),
        "Answers with basic counts of connections.",
        |b, _| {
            b.scope().handler = Some(answer);
            Ok(())
        },
    )
    .many()],
)
.variables(&[
    Variable::without_answer("connections_active", |exchange, _, out| put(out, active(&exchange.worker.all_counters))),
    Variable::without_answer("connections_reading", |exchange, _, out| {
        put(out, reading(&exchange.worker.all_counters))
    }),
    Variable::without_answer("connections_writing", |exchange, _, out| {
        put(out, writing(&exchange.worker.all_counters))
    }),
    Variable::without_answer("connections_waiting", |exchange, _, out| {
        put(out, waiting(&exchange.worker.all_counters))
    }),
]);

fn put(out: &mut Vec<u8>, number: u64) -> bool {
    encode::push_decimal(out, number);
    true
}

fn active(all: &[Counters]) -> u64 {
    counters::level(all, |counters| &counters.active)
}

fn reading(all: &[Counters]) -> u64 {
    counters::level(all, |counters| &counters.reading)
}

fn writing(all: &[Counters]) -> u64 {
    counters::level(all, |counters| &counters.writing)
}

/// Idle connections: they neither read a head nor send an answer.
fn waiting(all: &[Counters]) -> u64 {
    active(all).saturating_sub(reading(all)).saturating_sub(writing(all))
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    if !matches!(exchange.request.method(), b"GET" | b"HEAD") {
        return special::not_allowed(exchange, special::READS);
    }
    let text = page(&exchange.worker.all_counters);
    let response = &mut exchange.response;
    response.status.answer(200);
    response.content_type.clear();
    response.content_type.extend_from_slice(b"text/plain");
    response.content_length = Some(text.len() as u64);
    response.body = Body::Bytes(text.into_bytes());
    Next::Respond
}

fn page(all: &[Counters]) -> String {
    let sum = |pick: fn(&Counters) -> &std::sync::atomic::AtomicU64| counters::total(all, pick);
    let mut page = String::with_capacity(128);
    let written = write!(
        page,
        "Active connections: {} \nserver accepts handled requests\n {} {} {} \nReading: {} Writing: {} Waiting: {} \n",
        active(all),
        sum(|counters| &counters.accepted),
        sum(|counters| &counters.handled),
        counters::requests(all),
        reading(all),
        writing(all),
        waiting(all),
    );
    debug_assert!(written.is_ok()); // a String takes everything
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn the_page_adds_up_all_workers() {
        let all = [Counters::default(), Counters::default()];
        for counters in &all {
            counters::add(&counters.accepted, 5);
            counters::add(&counters.handled, 4);
            counters.traffic.iter().for_each(|of| counters::add(&of.requests, 3));
            counters::shift(&counters.active, 3);
        }
        all[0].reading.store(1, Ordering::Relaxed);
        all[1].writing.store(2, Ordering::Relaxed);
        assert_eq!(
            page(&all),
            "Active connections: 6 \nserver accepts handled requests\n 10 8 18 \nReading: 1 Writing: 2 Waiting: 3 \n"
        );
    }
}
