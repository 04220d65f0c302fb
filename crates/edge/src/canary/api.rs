//! The state of the canary for the API, and the orders of the API.
//!
//! Invariant: an order never brings a path. The file of a canary comes from `weir canary`, which the keeper obeys.

use serde_json::{Value, json};
use weir_meter::live::Canary;
use weir_proxy::family::upstream::edit::Refused;

use super::run::present;
use super::terms::CanaryOrder;

/// The state of the canary of this process, or of the last one.
pub fn state() -> Option<Canary> {
    present().map(|run| run.state())
}

/// The answer to `GET /weir/canary`.
pub fn shown(canary: Option<&Canary>) -> Value {
    json!({ "canary": canary })
}

/// Changes the share, promotes or rolls back. The answer is the state after it.
///
/// # Errors
/// The order is none, or no canary runs.
pub fn change(method: &str, body: &[u8]) -> Result<Value, Refused> {
    if !matches!(method, "POST" | "PATCH") {
        return Err(no(405, "MethodDisabled", "method disabled"));
    }
    let body = serde_json::from_slice(body).map_err(|error| no(415, "JsonError", format!("json error: {error}")))?;
    let order = read(&body)?;
    let run = present().ok_or_else(|| no(404, "CanaryNotFound", "no canary runs"))?;
    run.obey(order).map_err(|why| no(409, "CanaryRefused", why))?;
    Ok(shown(Some(&run.state())))
}

fn read(value: &Value) -> Result<CanaryOrder, Refused> {
    let bad = |what: &str| no(400, "CanaryFormatError", what);
    let members = value.as_object().ok_or_else(|| bad("the body is not an object"))?;
    let mut members = members.iter();
    let (Some((name, value)), None) = (members.next(), members.next()) else {
        return Err(bad("the body has one member: share, promote or roll_back"));
    };
    match (name.as_str(), value.as_f64(), value.as_bool()) {
        ("share", Some(share), _) => Ok(CanaryOrder::Share(share)),
        ("share", ..) => Err(bad("\"share\" is no number from 0.001 to 0.99")),
        ("promote", _, Some(true)) => Ok(CanaryOrder::Promote),
        ("roll_back", _, Some(true)) => Ok(CanaryOrder::RollBack),
        ("promote" | "roll_back", ..) => Err(bad("the value is not true")),
        _ => Err(bad("the body has one member: share, promote or roll_back")),
    }
}

fn no(status: u16, code: &'static str, text: impl Into<String>) -> Refused {
    Refused { status, code, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_or_refused_by_name() {
        let of = |text: &str| {
            let value = serde_json::from_str(text).unwrap_or_default();
            read(&value).map_err(|refused| refused.text)
        };
        assert_eq!(of(r#"{"share":0.1}"#), Ok(CanaryOrder::Share(0.1)));
        assert_eq!(of(r#"{"promote":true}"#), Ok(CanaryOrder::Promote));
        assert_eq!(of(r#"{"roll_back":true}"#), Ok(CanaryOrder::RollBack));
        for (text, what) in [
            ("[]", "not an object"),
            ("{}", "one member"),
            (r#"{"file":"/etc/passwd"}"#, "one member"),
            (r#"{"promote":true,"share":1}"#, "one member"),
            (r#"{"promote":false}"#, "not true"),
            (r#"{"share":"10%"}"#, "no number"),
        ] {
            assert!(of(text).is_err_and(|why| why.contains(what)), "{text}");
        }
    }
}
