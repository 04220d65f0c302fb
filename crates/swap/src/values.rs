//! The values that an arm's answers gave to a client, in the places of those that the recording has.
//!
//! Each arm has its own: a session of A is none of B. A value of a recorded answer stands for the value that the arm's
//! answer has at the same place: a cookie's name, a member of JSON, a hidden field of a form, a segment of `Location`.

use std::collections::HashMap;

use crate::request::{ARMS, Arm, HiddenText, SwapField, SwapRequest, WholeAnswer};

mod given;

use given::given;

/// Most clients whose values are kept; values of further clients are not replaced.
const CLIENTS_MAX: usize = 20_000;
/// Most values of a client in one arm.
const VALUES_MAX: usize = 2_000;
/// Most cookies of a client in one arm.
const COOKIES_MAX: usize = 300;
/// Bytes that end a value in a text.
const BORDERS: &[u8] = b"/?&=;, \t\"'{}[]():<>#";

/// The values of all clients.
#[derive(Debug, Default)]
pub struct Values {
    clients: HashMap<u64, [ArmValues; ARMS]>,
}

/// The values that one arm gave to one client.
#[derive(Debug, Default)]
struct ArmValues {
    cookies: Vec<(Vec<u8>, Vec<u8>)>,
    /// The recorded value and the arm's own.
    known: HashMap<Vec<u8>, Vec<u8>>,
    /// The last value under a name.
    named: HashMap<String, Vec<u8>>,
}

impl Values {
    /// The request as this arm gets it.
    pub fn of_arm(&self, request: &SwapRequest, arm: Arm) -> SwapRequest {
        let Some(values) = self.clients.get(&request.client).and_then(|arms| arms.get(arm as usize)) else {
            return request.clone();
        };
        let mut own = request.clone();
        if request.takes_cookies && !values.cookies.is_empty() {
            let pair = |(name, value): &(Vec<u8>, Vec<u8>)| [name.as_slice(), b"=", value].concat();
            let all: Vec<Vec<u8>> = values.cookies.iter().map(pair).collect();
            let written = request.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"cookie"));
            let cookie = written.map_or_else(|| all.join(b"; ".as_slice()), |(_, value)| values.cookie(value));
            own.set("Cookie", &cookie);
        }
        let hidden = |text: HiddenText| -> Vec<(usize, usize)> {
            let all = request.recorded.iter().flat_map(|recorded| &recorded.hidden);
            all.filter(|one| one.text == text).map(|one| one.span).collect()
        };
        if request.recorded.is_some() {
            own.target = values.replaced(&request.target, &hidden(HiddenText::Target));
            own.body = values.replaced(&request.body, &hidden(HiddenText::Body));
            for (index, (name, value)) in own.fields.iter_mut().enumerate() {
                *value = match name.eq_ignore_ascii_case(b"cookie") {
                    true => values.cookie(value),
                    false => values.field(name, value, &hidden(HiddenText::Field(index))),
                };
            }
        }
        own
    }

    /// Notes the values of an answer.
    pub fn learn(&mut self, request: &SwapRequest, arm: Arm, answer: &WholeAnswer) {
        let recorded = request.recorded.as_ref();
        let is_known = self.clients.contains_key(&request.client);
        if (!request.takes_cookies && recorded.is_none()) || (!is_known && self.clients.len() >= CLIENTS_MAX) {
            return;
        }
        let arms = self.clients.entry(request.client).or_default();
        let Some(values) = arms.get_mut(arm as usize) else { return };
        values.take_cookies(&answer.fields);
        let Some(recorded) = recorded else { return };
        let own = given(&answer.fields, &answer.body);
        let theirs = given(&recorded.fields, &recorded.body);
        for (place, value) in own {
            if let Some(old) = theirs.get(&place).filter(|old| **old != value)
                && (values.known.len() < VALUES_MAX || values.known.contains_key(old))
            {
                values.known.insert(old.clone(), value.clone());
            }
            let name = place.rsplit('.').next().unwrap_or(&place).to_owned();
            if values.named.len() < VALUES_MAX || values.named.contains_key(&name) {
                values.named.insert(name, value);
            }
        }
    }
}

impl ArmValues {
    fn take_cookies(&mut self, fields: &[SwapField]) {
        for (_, value) in fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
            let mut words = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let Some((name, value)) = words.next().and_then(pair) else { continue };
            let ends = words.any(|word| word.eq_ignore_ascii_case(b"max-age=0")) || value.is_empty();
            let at = self.cookies.iter().position(|(known, _)| known == name);
            match at {
                Some(at) if ends => drop(self.cookies.remove(at)),
                Some(at) => {
                    if let Some((_, known)) = self.cookies.get_mut(at) {
                        *known = value.to_vec();
                    }
                }
                None if ends || self.cookies.len() >= COOKIES_MAX => {}
                None => self.cookies.push((name.to_vec(), value.to_vec())),
            }
        }
    }

    /// A recorded `Cookie` with the arm's own values.
    fn cookie(&self, value: &[u8]) -> Vec<u8> {
        let own = |word: &[u8]| -> Vec<u8> {
            let Some((name, old)) = pair(word) else { return word.to_vec() };
            let known = self.cookies.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            let value = known.or_else(|| self.known.get(old)).map_or(old, Vec::as_slice);
            [name, b"=", value].concat()
        };
        let words = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii).map(own);
        words.collect::<Vec<_>>().join(b"; ".as_slice())
    }

    /// A field with the arm's own values; a hash that no answer gave is found by the name of the field.
    fn field(&self, name: &[u8], value: &[u8], hidden: &[(usize, usize)]) -> Vec<u8> {
        let own = self.replaced(value, hidden);
        let is_all = hidden == [(0, value.len())];
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        match self.named.get(&name).or_else(|| self.named.get(name.trim_start_matches("x-"))) {
            Some(named) if is_all && own == value => named.clone(),
            _ => own,
        }
    }

    /// The text with the arm's own values.
    fn replaced(&self, text: &[u8], hidden: &[(usize, usize)]) -> Vec<u8> {
        if self.known.is_empty() && (hidden.is_empty() || self.named.is_empty()) {
            return text.to_vec();
        }
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let span = hidden.iter().find(|(begin, end)| *begin == at && end > begin);
            let end = match span {
                Some((_, end)) => (*end).min(text.len()),
                None => {
                    let next = hidden.iter().map(|(begin, _)| *begin).filter(|begin| *begin > at).min();
                    let rest = text.get(at..).unwrap_or_default();
                    let border = rest.iter().position(|byte| BORDERS.contains(byte)).map_or(text.len(), |to| at + to);
                    border.min(next.unwrap_or(text.len())).max(at)
                }
            };
            let word = text.get(at..end).unwrap_or_default();
            let known = self.known.get(word).filter(|_| !word.is_empty());
            let named = || span.and_then(|_| self.named.get(&name_before(text.get(..at).unwrap_or_default())));
            out.extend_from_slice(known.or_else(named).map_or(word, Vec::as_slice));
            // The border itself.
            if span.is_none()
                && end < text.len()
                && (end == at || text.get(end).is_some_and(|byte| BORDERS.contains(byte)))
            {
                out.extend(text.get(end));
                at = end + 1;
            } else {
                at = end;
            }
        }
        out
    }
}

/// The name in front of a value: `a=` of a form or a query, `"a":"` of JSON.
fn name_before(text: &[u8]) -> String {
    let text = text.trim_ascii_end();
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let end = text.iter().rposition(is_of_name).map_or(0, |at| at + 1);
    let begin = text.get(..end).and_then(|text| text.iter().rposition(|byte| !is_of_name(byte))).map_or(0, |at| at + 1);
    String::from_utf8_lossy(text.get(begin..end).unwrap_or_default()).into_owned()
}

fn pair(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = word.iter().position(|byte| *byte == b'=')?;
    Some((word.get(..at)?, word.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    use crate::request::{Hidden, Recorded};

    fn answer(fields: &[(&str, &str)], body: &str) -> WholeAnswer {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        WholeAnswer { status: 200, fields: fields.collect(), body: body.into(), body_bytes: 0 }
    }

    fn recorded(fields: &[(&str, &str)], body: &str) -> SwapRequest {
        let answer = answer(fields, body);
        let recorded = Recorded { fields: answer.fields, body: answer.body, hidden: Vec::new() };
        SwapRequest { recorded: Some(Arc::new(recorded)), ..SwapRequest::default() }
    }

    #[test]
    fn each_arm_gets_its_own_values() {
        let mut values = Values::default();
        let login =
            recorded(&[("Set-Cookie", "sid=HASH1; Path=/"), ("Location", "/orders/17")], r#"{"token":"HASHTOKEN"}"#);
        values.learn(
            &login,
            Arm::First,
            &answer(&[("set-cookie", "sid=a1"), ("location", "/orders/90")], r#"{"token":"tokenA1tokenA1"}"#),
        );
        values.learn(
            &login,
            Arm::B,
            &answer(&[("set-cookie", "sid=b1; x"), ("location", "/orders/91")], r#"{"token":"tokenB1tokenB1"}"#),
        );
        let mut later = recorded(&[], "");
        later.target = b"/orders/17?n=170".to_vec();
        later.set("Cookie", b"sid=HASH1; lang=ko");
        later.set("Authorization", b"Bearer HASHTOKEN");
        later.body = br#"{"t":"HASHTOKEN","x":[17]}"#.to_vec();
        let a = values.of_arm(&later, Arm::First);
        assert_eq!(a.target, b"/orders/90?n=170");
        assert_eq!(a.field("cookie").unwrap(), b"sid=a1; lang=ko");
        assert_eq!(a.field("authorization").unwrap(), b"Bearer tokenA1tokenA1");
        assert_eq!(a.body, br#"{"t":"tokenA1tokenA1","x":[90]}"#);
        assert_eq!(values.of_arm(&later, Arm::B).field("cookie").unwrap(), b"sid=b1; lang=ko");
        assert_eq!(values.of_arm(&later, Arm::Again), later);
        later.client = 9;
        assert_eq!(values.of_arm(&later, Arm::First), later);
    }

    #[test]
    fn a_hidden_field_is_found_by_its_name() {
        let mut values = Values::default();
        // The recording has no bodies of answers.
        let page = "<form><input type=hidden name=csrf value=live-token-1></form>";
        values.learn(&recorded(&[], ""), Arm::First, &answer(&[("content-type", "text/html")], page));
        let mut post = recorded(&[], "");
        post.body = b"a=1&csrf=HASH&b=2".to_vec();
        let hidden = vec![Hidden { text: HiddenText::Body, span: (9, 13) }];
        post.recorded = Some(Arc::new(Recorded { hidden, ..Recorded::default() }));
        assert_eq!(values.of_arm(&post, Arm::First).body, b"a=1&csrf=live-token-1&b=2");
    }

    #[test]
    fn a_client_without_a_recording_has_cookies() {
        let mut values = Values::default();
        let request = SwapRequest { takes_cookies: true, ..SwapRequest::default() };
        values.learn(&request, Arm::B, &answer(&[("Set-Cookie", "a=1; HttpOnly"), ("Set-Cookie", "b=2")], ""));
        assert_eq!(values.of_arm(&request, Arm::B).field("cookie").unwrap(), b"a=1; b=2");
        values.learn(&request, Arm::B, &answer(&[("Set-Cookie", "a=; Max-Age=0")], ""));
        assert_eq!(values.of_arm(&request, Arm::B).field("cookie").unwrap(), b"b=2");
    }
}
