//! How a family keeps its settings: `Settings` as written (unset is `None`) and `Values` in force.
//!
//! `settings!` writes both structs from one list, so a setting has one definition: its name, its type and its
//! default. Inheritance is nginx's: a block takes the settings that it does not set from the block around it.

/// Defines a family's `Settings`, `Values`, inheritance and defaults from one list of `name: Type = default`.
#[macro_export]
macro_rules! settings {
    ($( $(#[$doc:meta])* $name:ident : $type:ty = $default:expr ),* $(,)?) => {
        /// The family's settings of one block, as written.
        #[derive(Clone, Default)]
        pub struct Settings { $( $(#[$doc])* pub $name: Option<$type>, )* }

        /// The family's settings in force in one place.
        #[derive(Clone)]
        pub struct Values { $( $(#[$doc])* pub $name: $type, )* }

        impl Settings {
            /// Takes from the enclosing block the settings that this block does not set.
            #[allow(unused_variables)]
            pub fn inherit(&mut self, outer: &Settings) {
                $( if self.$name.is_none() { self.$name = outer.$name.clone(); } )*
            }

            /// The values in force, defaults filled in.
            pub fn values(self) -> Values {
                Values { $( $name: match self.$name { Some(value) => value, None => $default }, )* }
            }
        }
    };
}
