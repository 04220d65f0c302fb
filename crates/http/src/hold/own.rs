//! The values that families keep with one exchange: a limit's verdict, a place under a limit, the part of an answer.

use std::any::Any;

/// A value that a family keeps until the exchange ends; it may act when it is dropped.
pub trait Owned: Any {
    /// The same value for a request that weir makes for this one (nginx: a subrequest sees it in its main request);
    /// `None` if it belongs to this exchange alone.
    fn copy(&self) -> Option<Box<dyn Owned>> {
        None
    }

    /// Whether an internal redirect ends it (nginx: `ngx_http_internal_redirect` clears the contexts of modules).
    fn ends_at_redirect(&self) -> bool {
        false
    }
}

/// The values. Few exchanges have any, and none has many, so weir looks through them in order.
#[derive(Default)]
pub struct Own(Vec<Box<dyn Owned>>);

impl Own {
    /// The first value of this type.
    pub fn get<T: Owned>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| as_any(&**value).downcast_ref())
    }

    /// The first value of this type, to change it.
    pub fn get_mut<T: Owned>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|value| {
            let value: &mut dyn Any = &mut **value;
            value.downcast_mut()
        })
    }

    /// Adds a value; there may be several of one type.
    pub fn add(&mut self, value: impl Owned) {
        self.0.push(Box::new(value));
    }

    /// Puts a value back that was taken out.
    pub fn put_back(&mut self, value: Box<dyn Owned>) {
        self.0.push(value);
    }

    /// Replaces the values of this type by this one.
    pub fn set<T: Owned>(&mut self, value: T) {
        self.remove::<T>();
        self.add(value);
    }

    /// Removes all values of this type.
    pub fn remove<T: Owned>(&mut self) {
        self.0.retain(|value| !as_any(&**value).is::<T>());
    }

    /// Removes the values that end at an internal redirect.
    pub fn redirect(&mut self) {
        self.0.retain(|value| !value.ends_at_redirect());
    }

    /// Takes the first value of this type out.
    pub fn take<T: Owned>(&mut self) -> Option<Box<T>> {
        let at = self.0.iter().position(|value| as_any(&**value).is::<T>())?;
        let value: Box<dyn Any> = self.0.swap_remove(at);
        value.downcast().ok()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values for a request that weir makes for this exchange's.
    pub fn copy(&self) -> Own {
        Own(self.0.iter().filter_map(|value| value.copy()).collect())
    }
}

fn as_any(value: &dyn Owned) -> &dyn Any {
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Number(u8);
    struct Text(&'static str);

    impl Owned for Number {}
    impl Owned for Text {
        fn copy(&self) -> Option<Box<dyn Owned>> {
            Some(Box::new(Text(self.0)))
        }
    }

    #[test]
    fn values_are_found_by_their_type() {
        let mut own = Own::default();
        assert!(own.get::<Number>().is_none() && own.is_empty());
        own.add(Number(1));
        own.add(Text("a"));
        own.add(Number(2));
        assert_eq!((own.get::<Number>(), own.get::<Text>().map(|text| text.0)), (Some(&Number(1)), Some("a")));
        own.set(Number(3));
        assert_eq!(own.take::<Number>(), Some(Box::new(Number(3))));
        assert!(own.take::<Number>().is_none() && own.get::<Text>().is_some());
    }

    #[test]
    fn a_copy_has_what_subrequests_see() {
        let mut own = Own::default();
        own.add(Number(1));
        own.add(Text("a"));
        let copy = own.copy();
        assert!(copy.get::<Number>().is_none() && copy.get::<Text>().is_some());
    }
}
