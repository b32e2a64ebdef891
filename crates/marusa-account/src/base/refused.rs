//! Words of a user, or of a file, that are not taken: all that is known of such an error is its message.

/// Why a value is not taken, as the user reads it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Refused {
        Refused(why.to_string())
    }
}

/// Ends the function with `Refused`, or an error made of it, and a message as `format!` makes it.
#[macro_export]
macro_rules! refuse {
    ($($words:tt)*) => {
        return Err($crate::base::Refused(format!($($words)*)).into())
    };
}
