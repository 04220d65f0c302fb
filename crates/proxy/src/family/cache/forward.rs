//! Asks a location's cache, and its upstream if the cache has no answer.

use weir_http::exchange::Exchange;
use weir_http::exchange::counting;
use weir_http::exchange::phase::Outcome;
use weir_http::hold::board::Leg;
use weir_http::hold::conn::Conn;

use super::facts::Use;
use super::{ask, keep};
use crate::family::Values;
use crate::family::upstream::answer::Answer;
use crate::family::upstream::forward;
use crate::family::upstream::source::Source;

/// Asks the location's cache, then its upstream; `values` are the settings of the location.
pub async fn forward(
    exchange: &mut Exchange<'_>,
    conn: &mut Conn,
    values: &Values,
    source: &mut Option<Source>,
) -> Answer {
    // An answer before an internal redirect is not that of this upstream.
    exchange.forget_answer();
    exchange.flags.is_forwarded = true;
    if let Some(by) = values.cache.purge.by_method(exchange) {
        // The key may need the body.
        if values.cache.reads_body
            && let Err(answer) = forward::read_first(exchange, conn).await
        {
            return answer;
        }
        return Answer::Outcome(ask::purge_by_method(exchange, values, by));
    }
    if matches!(values.cache.zone, Use::Off) {
        return forward::forward(exchange, conn, values, None, source).await;
    }
    if (values.cache.reads_body || values.proxy.pass_reads_body)
        && let Err(answer) = forward::read_first(exchange, conn).await
    {
        return answer;
    }
    let begun = weir_net::clock::now();
    let said = ask::ask(exchange, conn, values).await;
    counting::held(exchange, Leg::Cache, begun);
    match said {
        ask::Said::Answer(answer) => answer,
        ask::Said::Fetch => {
            let answer = forward::forward(exchange, conn, values, Some(keep::judge), source).await;
            without_upstream(exchange, answer)
        }
    }
}

/// If the upstream gave no answer, serves a stored one, or keeps the error.
fn without_upstream(exchange: &mut Exchange<'_>, answer: Answer) -> Answer {
    let Answer::Outcome(Outcome::Status(status)) = answer else { return answer };
    let Some(trouble) = exchange.cache.trouble.take() else { return answer };
    if let Some(answer) = keep::instead_of(exchange, trouble) {
        return answer;
    }
    keep::own_error(exchange, status);
    answer
}
