//! Tables of numbers in the configuration file.

use super::error::ConfigError;

/// A table whose keys have defaults, perhaps with a switch in front. `check` refuses zero, which would switch off what a key limits.
macro_rules! table {
    (
        $vis:vis struct $table:ident in $name:ident {
            $([$switch:ident = $on:literal])?
            $($key:ident: $type:ty = $default:expr,)+
        }
    ) => {
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $vis struct $table {
            $($switch: bool,)?
            $($key: $type,)+
        }

        impl Default for $table {
            fn default() -> Self {
                Self { $($switch: $on,)? $($key: $default,)+ }
            }
        }

        impl $table {
            $vis fn check(&self) -> Result<(), $crate::config::error::ConfigError> {
                let keys = [$((concat!(stringify!($name), ".", stringify!($key)), self.$key == 0),)+];
                $crate::config::numbers::refuse_zero(&keys)
            }
        }
    };
}
pub(super) use table;

/// Each key, and whether it is zero.
pub(super) fn refuse_zero(keys: &[(&'static str, bool)]) -> Result<(), ConfigError> {
    match keys.iter().find(|(_, is_zero)| *is_zero) {
        Some((key, _)) => Err(ConfigError::Value { key, reason: "must be more than 0".to_owned() }),
        None => Ok(()),
    }
}
