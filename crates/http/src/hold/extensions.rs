//! Values that a long-lived owner keeps for its users without knowing their types: one value of each type.

use std::any::{Any, TypeId};
use std::cell::OnceCell;

/// The values. There are as many as types that ask, about ten, so weir looks through them in order.
#[derive(Default)]
pub struct Extensions {
    first: OnceCell<Box<Node>>,
}

struct Node {
    /// The type of the value: comparing it here is cheaper than asking the value.
    id: TypeId,
    value: Box<dyn Any>,
    next: OnceCell<Box<Node>>,
}

impl Extensions {
    /// The value of this type. `new` makes it when it is asked for the first time.
    #[inline]
    pub fn of<T: Any>(&self, new: impl Fn() -> T) -> &T {
        let id = TypeId::of::<T>();
        let mut place = &self.first;
        while let Some(node) = place.get() {
            if node.id == id
                && let Some(value) = node.value.downcast_ref()
            {
                return value;
            }
            place = &node.next;
        }
        append(place, &new)
    }
}

/// Puts a new value at the first empty place from here on.
#[cold]
fn append<'n, T: Any>(mut place: &'n OnceCell<Box<Node>>, new: &dyn Fn() -> T) -> &'n T {
    let id = TypeId::of::<T>();
    loop {
        let node = place.get_or_init(|| Box::new(Node { id, value: Box::new(new()), next: OnceCell::new() }));
        if let Some(value) = node.value.downcast_ref() {
            return value;
        }
        place = &node.next;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn each_type_has_one_value_that_is_made_once() {
        let (extensions, made) = (Extensions::default(), Cell::new(0));
        let number = || extensions.of(|| Cell::new(made.replace(made.get() + 1)));
        let text = || extensions.of(|| String::from("text"));
        number().set(7);
        assert_eq!((text().as_str(), number().get(), made.get()), ("text", 7, 1));
    }
}
