//! Macros with which a crate declares its families. They only write declarations down: the code is in `families` and
//! `above`.

/// Declares the families of a crate: their modules, and their settings, values and declarations as one type each.
#[macro_export]
macro_rules! declare {
    ($($name:ident)*) => {
        $( pub mod $name; )*

        /// Every family's settings of one block, as written.
        #[derive(Clone, Default)]
        #[allow(missing_docs)]
        pub struct Settings { $( pub $name: $name::Settings, )* }

        /// Every family's settings in force in one place.
        #[derive(Clone)]
        #[allow(missing_docs)]
        pub struct Values { $( pub $name: $name::Values, )* }

        /// The declarations for all of `http`: maps, log formats, upstreams.
        #[derive(Default)]
        #[allow(missing_docs)]
        pub struct Declared { $( pub $name: $name::Declared, )* }

        impl Settings {
            /// Takes over settings that this block does not set from the enclosing block.
            pub fn inherit(&mut self, outer: &Settings) { $( self.$name.inherit(&outer.$name); )* }

            /// The values in force, defaults filled in.
            pub fn values(self) -> Values { Values { $( $name: self.$name.values(), )* } }
        }

        /// The families of this crate, in the order in which their handlers of one phase run.
        pub static FAMILIES: &[&$crate::read::families::Family] = &[ $( &$name::FAMILY, )* ];
    };
}

/// Makes the functions through which the families of the crate of this level reach their settings, values and
/// declarations. They expect the crate's types `Settings`, `Values` and `Declared`.
#[macro_export]
macro_rules! above {
    ($level:literal) => {
        $crate::above!($level, Vec::new);
    };
    ($level:literal, $session_variables:expr) => {
        impl $crate::hold::above::Written for Settings {
            fn copy(&self) -> Box<dyn $crate::hold::above::Written> {
                Box::new(self.clone())
            }

            fn inherit(&mut self, outer: &dyn $crate::hold::above::Written) {
                let outer: &dyn std::any::Any = outer;
                if let Some(outer) = outer.downcast_ref::<Settings>() {
                    Settings::inherit(self, outer);
                }
            }

            fn values(self: Box<Self>) -> Box<dyn std::any::Any + Send + Sync> {
                Box::new(Settings::values(*self))
            }
        }

        /// The settings of the innermost block.
        pub fn settings<'b>(b: &'b mut $crate::read::build::Build<'_>) -> &'b mut Settings {
            b.scope().above.get_mut($level)
        }

        /// The settings of a block.
        pub fn written(scope: &$crate::read::build::Scope) -> &Settings {
            static NOTHING: std::sync::LazyLock<Settings> = std::sync::LazyLock::new(Settings::default);
            scope.above.get::<Settings>($level).unwrap_or_else(|| &NOTHING)
        }

        /// The settings of a block, to change them.
        pub fn written_mut(scope: &mut $crate::read::build::Scope) -> &mut Settings {
            scope.above.get_mut($level)
        }

        /// The settings in force in a location.
        #[inline]
        pub fn values(location: &$crate::exchange::conf::Location) -> &Values {
            location.above.get::<Values>($level).unwrap_or_else(|| defaults())
        }

        /// The settings in force in a location, to change them.
        pub fn values_mut(location: &mut $crate::exchange::conf::Location) -> &mut Values {
            location.above.get_mut($level, || defaults().clone())
        }

        #[cold]
        fn defaults() -> &'static Values {
            static DEFAULTS: std::sync::LazyLock<Values> = std::sync::LazyLock::new(|| Settings::default().values());
            &DEFAULTS
        }

        /// The declarations of a configuration.
        #[inline]
        pub fn declared(conf: &$crate::exchange::conf::Conf) -> &Declared {
            conf.above.get::<Declared>($level).unwrap_or_else(|| nothing_declared())
        }

        /// The declarations of a configuration that is not in force yet.
        pub fn declared_mut(conf: &mut $crate::exchange::conf::Conf) -> &mut Declared {
            conf.above.get_mut($level, Declared::default)
        }

        /// The declarations read so far.
        pub fn declaring<'b>(b: &'b mut $crate::read::build::Build<'_>) -> &'b mut Declared {
            b.above.get_mut($level, Declared::default)
        }

        /// The declarations read so far, to look at them.
        pub fn declared_so_far<'b>(b: &'b $crate::read::build::Build<'_>) -> &'b Declared {
            b.above.get::<Declared>($level).unwrap_or_else(|| nothing_declared())
        }

        #[cold]
        fn nothing_declared() -> &'static Declared {
            static NOTHING: std::sync::LazyLock<Declared> = std::sync::LazyLock::new(Declared::default);
            &NOTHING
        }

        /// The families of this crate.
        pub static LEVEL: $crate::read::families::Level = $crate::read::families::Level {
            families: FAMILIES,
            session_variables: $session_variables,
            declare: Some(|declared| drop(declared.get_mut($level, Declared::default))),
        };
    };
}
