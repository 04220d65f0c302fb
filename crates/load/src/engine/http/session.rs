//! The state of `engine: http` that one virtual user keeps between its requests.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use weir_net::clock;

use super::sockets::Sockets;
use crate::client::Origin;
use crate::cookie::{Jar, Rules};
use crate::url::Url;
use crate::value::Value;

/// The connections and cookies of a virtual user.
pub struct HttpSession(Rc<Inner>);

struct Inner {
    sockets: OnceCell<Rc<Sockets>>,
    jar: RefCell<Option<Box<Jar>>>,
    rules: Rules,
    /// True if requests send cookies: after the first cookie arrived, or from the start.
    sends_cookies: Cell<bool>,
}

impl HttpSession {
    /// A session without connections or cookies; it accepts cookies by these rules.
    pub fn new(rules: Rules) -> HttpSession {
        HttpSession(Rc::new(Inner {
            sockets: OnceCell::new(),
            jar: RefCell::new(None),
            rules,
            sends_cookies: Cell::new(false),
        }))
    }

    /// The same connections and cookies, for a branch of `parallel`.
    pub fn share(&self) -> HttpSession {
        HttpSession(self.0.clone())
    }

    /// The connections: those that all virtual users share, if there is a pool, or at most `most` of its own.
    pub(super) fn sockets(&self, pool: Option<&Rc<Sockets>>, most: Option<usize>) -> Rc<Sockets> {
        match pool {
            Some(pool) => pool.clone(),
            None => self.0.sockets.get_or_init(|| Sockets::new(most.unwrap_or(1))).clone(),
        }
    }

    /// Closes the connections, or those of the pool, that no request has used for long.
    pub(super) fn close_old(&self, pool: Option<&Rc<Sockets>>) {
        if let Some(sockets) = pool.or_else(|| self.0.sockets.get()) {
            sockets.close_old(clock::now());
        }
    }

    /// Stores a cookie; false if it cannot be read.
    pub(super) fn set_cookie(&self, text: &str, host: &str, target: &str) -> bool {
        let (now, rules) = (clock::unix_seconds() as i64, self.0.rules);
        self.0.jar.borrow_mut().get_or_insert_default().set(text, host, target, now, rules).is_ok()
    }

    /// Stores a cookie that a processor sets for a URL; false if it cannot be read.
    pub fn put_cookie(&self, text: &str, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.set_cookie(text, &url.host, &url.target))
    }

    /// The cookies in the form for a processor; undefined if there are none.
    pub fn listed_cookies(&self) -> Value {
        self.0.jar.borrow().as_ref().map_or(Value::Undefined, |jar| jar.list(clock::unix_seconds() as i64))
    }

    /// Forgets the cookies.
    pub fn clear_cookies(&self) {
        self.0.jar.replace(None);
    }

    /// The Cookie field's value.
    pub(super) fn cookies(&self, origin: &Origin, target: &str) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(jar) = &*self.0.jar.borrow() {
            jar.write(origin.scheme, &origin.host, target, clock::unix_seconds() as i64, &mut out);
        }
        out
    }

    /// True if requests send cookies.
    pub(super) fn sends_cookies(&self) -> bool {
        self.0.sends_cookies.get()
    }

    /// From now on, requests send cookies.
    pub(super) fn send_cookies(&self) {
        self.0.sends_cookies.set(true);
    }
}
