//! A request of the http engine (artillery.md §2.1).

use std::path::PathBuf;

use weir_words::say;

use super::build::Builder;
use super::files;
use super::keys;
use super::node::{Node, NodeValue};
use super::take::MessageKind;
use crate::expression::Expression;
use crate::plan::{Condition, FormPart, Request, RequestBody};
use crate::template::{Template, Tree};
use crate::texts::script as texts;
use crate::value::Value;

/// The largest file of a form, in bytes; it is kept in memory.
pub(crate) const FORM_FILE_BYTES_MAX: u64 = 256 << 20;

impl Builder<'_> {
    /// The request under a verb.
    pub fn request(&mut self, verb: &str, node: &Node) -> Request {
        if node.map().is_some() {
            keys::REQUEST.check(node, self.notes);
        }
        let take = self.take(node, MessageKind::Message);
        let url = ["url", "uri"].into_iter().find_map(|key| node.get(key).filter(|url| url.is_truthy()));
        if url.is_none() {
            self.notes.warn(node.at, say!(texts::NO_URL, verb));
        }
        let http2 =
            node.get("http2").and_then(|http2| if let NodeValue::Bool(on) = http2.kind { Some(on) } else { None });
        if let Some(url) = url.filter(|_| http2.is_none()) {
            self.check_http3_url(url);
        }
        let before_request = [self.hook_before.clone(), self.functions(node, "beforeRequest")].concat();
        let after_response = [self.hook_after.clone(), self.functions(node, "afterResponse")].concat();
        Request {
            number: self.requests.number(),
            method: verb.to_uppercase(),
            url: url.map(|url| self.template(url)),
            name: node.get("name").map(|name| self.template(name)),
            headers: self.headers(node.get("headers")),
            body: self.body(node),
            query: node.get("qs").map(|query| self.tree(query)),
            cookies: self.texts(node.get("cookie")),
            auth: node.get("auth").map(|auth| self.auth(auth)),
            http2,
            gzip: node.get("gzip").and_then(|gzip| if let NodeValue::Bool(on) = gzip.kind { Some(on) } else { None }),
            follows: !node.get("followRedirect").is_some_and(Node::is_no),
            allow_get_body: node.get("allowGetBody").is_some_and(Node::is_yes),
            captures: take.captures,
            matches: take.matches,
            expect: self.expect(node),
            before_request,
            after_response,
            if_true: node.get("ifTrue").map(|condition| self.condition(condition)),
            probability: node.get("probability").map(|node| self.probability(node)),
            spec: node.value(),
        }
    }

    /// `headers`: names in lower case; of equal names the last one counts.
    pub fn headers(&mut self, node: Option<&Node>) -> Vec<(String, Template)> {
        let mut headers: Vec<(String, Template)> = Vec::new();
        for (name, value) in self.texts(node) {
            let name = name.to_lowercase();
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value));
        }
        headers
    }

    /// An object of texts.
    pub fn texts(&mut self, node: Option<&Node>) -> Vec<(String, Template)> {
        let members = node.and_then(Node::map).into_iter().flatten();
        let set = members.filter(|(_, member)| member.value.kind != NodeValue::Undefined);
        set.map(|(name, member)| (name.to_string(), self.template(&member.value))).collect()
    }

    fn auth(&mut self, auth: &Node) -> (Template, Template) {
        keys::AUTH.check(auth, self.notes);
        let mut part = |key: &str| match auth.get(key) {
            Some(node) => self.template(node),
            None => self.text(""),
        };
        (part("user"), part("pass"))
    }

    fn body(&mut self, node: &Node) -> RequestBody {
        let has = |key: &str| node.get(key).filter(|node| node.is_truthy());
        if let Some(form) = has("formData") {
            let sets_length = node.get("setContentLengthHeader").is_some_and(Node::is_truthy);
            return RequestBody::Multipart { parts: self.parts(form), sets_length };
        }
        if let Some(json) = has("json") {
            return RequestBody::Json(self.tree(json));
        }
        if let Some(body) = has("body") {
            if body.map().is_some() || body.list().is_some() {
                self.notes.warn(body.at, texts::BODY_OBJECT);
                return RequestBody::Json(self.tree(body));
            }
            return RequestBody::Raw(self.template(body));
        }
        if let Some(form) = has("form") {
            let members = form.map().into_iter().flatten();
            return RequestBody::Form(
                members.map(|(name, member)| (name.to_string(), self.tree(&member.value))).collect(),
            );
        }
        RequestBody::None
    }

    fn parts(&mut self, form: &Node) -> Vec<(String, FormPart)> {
        let members = form.map().into_iter().flatten();
        members.map(|(name, member)| (name.to_string(), self.part(&member.value))).collect()
    }

    fn part(&mut self, node: &Node) -> FormPart {
        if node.map().is_none() {
            return FormPart::Value(self.tree(node), None);
        }
        keys::PART.check(node, self.notes);
        let kind = node.get("contentType").map(Node::shown);
        if let Some(file) = node.get("fromFile").filter(|file| file.is_truthy()) {
            let name = file.shown();
            if name.contains("{{") {
                return FormPart::FileNamed(self.template(file), kind);
            }
            let path: PathBuf = self.dir.join(&name);
            self.notes.files.push(path.clone());
            return match files::read_bytes(&path, FORM_FILE_BYTES_MAX) {
                Ok(bytes) => FormPart::File(path, bytes.into(), kind),
                Err(why) => {
                    self.notes.refuse(file.at, why);
                    FormPart::Value(Tree::parse(&Node::text_at(file.at, "").value(), &mut self.names), kind)
                }
            };
        }
        FormPart::Value(self.tree(node.get("value").unwrap_or(node)), kind)
    }

    fn condition(&mut self, node: &Node) -> Condition {
        let text = node.shown();
        let expression = match Expression::parse(&text) {
            Ok(expression) => {
                // An unknown function shows only when it is called. Other errors depend on the variables.
                let tried = expression.value(&|_| Value::Undefined).err();
                if let Some(why) = tried.filter(|why| why.starts_with("Unknown function"))
                    && !self.has_processor
                {
                    self.notes.warn(node.at, say!(texts::NO_CONDITION, why));
                }
                Some(expression)
            }
            Err(why) => {
                // The text may still name a function that only the processor has.
                if !self.has_processor {
                    self.notes.warn(node.at, say!(texts::NOT_CONDITION, why));
                }
                None
            }
        };
        Condition { text, expression }
    }

    fn probability(&mut self, node: &Node) -> f64 {
        let number = node.number();
        if !(0.0..=100.0).contains(&number) {
            self.notes.warn(node.at, texts::BAD_PROBABILITY);
        }
        if number.is_nan() { 0.0 } else { number.clamp(0.0, 100.0) }
    }
}
