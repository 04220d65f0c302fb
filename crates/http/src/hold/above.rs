//! Typed places for the crates above the engine: their families' settings, values and declarations.
//!
//! The engine passes the places on without knowing their types. Each crate has a place of its own, and `above!` makes the
//! functions through which its families reach it.

use std::any::Any;

/// The crates above the engine that have families.
pub const LEVELS: usize = 3;

/// One place for each crate.
pub struct Above<T: ?Sized>([Option<Box<T>>; LEVELS]);

/// Settings of one block, as written.
pub type Settings = Above<dyn Written>;

/// Settings in force in one place.
pub type Values = Above<dyn Any + Send + Sync>;

/// Declarations for all of `http`.
pub type Declared = Above<dyn Any + Send + Sync>;

/// A crate's settings of one block.
pub trait Written: Any {
    /// The same settings once more.
    fn copy(&self) -> Box<dyn Written>;

    /// Takes over settings that this block does not set from the enclosing block; `outer` has the same type.
    fn inherit(&mut self, outer: &dyn Written);

    /// The values in force, defaults filled in.
    fn values(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
}

impl<T: ?Sized> Default for Above<T> {
    fn default() -> Above<T> {
        Above([const { None }; LEVELS])
    }
}

impl Clone for Settings {
    fn clone(&self) -> Settings {
        Above(self.0.each_ref().map(|place| place.as_ref().map(|settings| settings.copy())))
    }
}

impl Settings {
    /// The settings of a crate; `None` if nothing was written yet.
    pub fn get<S: Any>(&self, level: usize) -> Option<&S> {
        let settings: &dyn Any = self.0.get(level)?.as_deref()?;
        settings.downcast_ref()
    }

    /// The settings of a crate, empty at first.
    pub fn get_mut<S: Written + Default>(&mut self, level: usize) -> &mut S {
        let place: &mut dyn Any = self.0[level].get_or_insert_with(|| Box::new(S::default())).as_mut();
        of_level(place.downcast_mut())
    }

    /// Takes over settings that this block does not set from the enclosing block.
    pub fn inherit(&mut self, outer: &Settings) {
        for (own, outer) in self.0.iter_mut().zip(&outer.0) {
            match (own, outer) {
                (Some(own), Some(outer)) => own.inherit(&**outer),
                (own @ None, Some(outer)) => *own = Some(outer.copy()),
                (_, None) => {}
            }
        }
    }

    /// The values in force; a crate of which nothing is written has no value.
    pub fn values(self) -> Values {
        Above(self.0.map(|place| place.map(Written::values)))
    }
}

impl Values {
    /// The values of a crate; `None` if nothing was written.
    #[inline]
    pub fn get<V: Any>(&self, level: usize) -> Option<&V> {
        self.0.get(level)?.as_deref()?.downcast_ref()
    }

    /// The values of a crate; `new` makes them if there are none.
    pub fn get_mut<V: Any + Send + Sync>(&mut self, level: usize, new: impl FnOnce() -> V) -> &mut V {
        of_level(self.0[level].get_or_insert_with(|| Box::new(new())).downcast_mut())
    }
}

/// Only the crate of a level reaches its places, by functions that `above!` makes, and always with the same type.
fn of_level<T>(found: Option<&mut T>) -> &mut T {
    match found {
        Some(found) => found,
        None => unreachable!("two types share a level"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Own(Option<u8>);

    impl Written for Own {
        fn copy(&self) -> Box<dyn Written> {
            Box::new(self.clone())
        }

        fn inherit(&mut self, outer: &dyn Written) {
            let outer: &dyn Any = outer;
            self.0 = self.0.or(outer.downcast_ref::<Own>().and_then(|own| own.0));
        }

        fn values(self: Box<Self>) -> Box<dyn Any + Send + Sync> {
            Box::new(self.0.unwrap_or(9))
        }
    }

    #[test]
    fn a_block_inherits_the_settings_it_does_not_set() {
        for (outer, inner, value) in [(Some(1), None, 1), (Some(1), Some(2), 2), (None, Some(2), 2), (None, None, 9)] {
            let (mut around, mut block) = (Settings::default(), Settings::default());
            around.get_mut::<Own>(1).0 = outer;
            block.get_mut::<Own>(1).0 = inner;
            block.inherit(&around);
            assert_eq!(block.values().get::<u8>(1), Some(&value), "{outer:?} {inner:?}");
        }
    }

    #[test]
    fn a_block_without_settings_takes_all_of_the_block_around_it() {
        let (mut around, mut block) = (Settings::default(), Settings::default());
        around.get_mut::<Own>(0).0 = Some(1);
        block.inherit(&around);
        let values = block.values();
        assert_eq!((values.get::<u8>(0), values.get::<u8>(1)), (Some(&1), None));
    }
}
