//! The positions of columns in the rows of a statement: looked up by name, once per statement and not per row.

use crate::{Error, ErrorKind, Result};

/// The position of the column `name` in `names`.
///
/// # Errors
/// [`ErrorKind::Backend`] when there is none: the tables or functions are of another version than the program.
pub fn position(names: &[&str], name: &str) -> Result<usize> {
    let found = names.iter().position(|found| *found == name);
    found.ok_or_else(|| {
        Error::new(ErrorKind::Backend, format!("the database returned no column {name}"))
            .because(format!("it returned the columns {}", names.join(", ")))
            .next_step("run `sendoff migrate`: the outbox's tables and functions must have the version of this program")
    })
}

macro_rules! positions {
    ($(#[$doc:meta])* $positions:ident { $($name:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $positions {
            $(
                #[doc = concat!("The column `", stringify!($name), "`.")]
                pub $name: usize,
            )+
        }

        impl $positions {
            /// Finds the positions of all columns by the column names of a query result.
            ///
            /// # Errors
            /// As [`position`].
            pub fn find(names: &[&str]) -> $crate::Result<Self> {
                Ok(Self {
                    $($name: position(names, stringify!($name))?,)+
                })
            }
        }
    };
}
pub(super) use positions;

#[cfg(test)]
mod tests {
    use super::super::{COLUMNS, Positions};
    use super::*;

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let mut names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
        names.push("lane");
        names.reverse();
        let at = Positions::find(&names).unwrap();
        assert_eq!(
            (names[at.id], names[at.topic], names[at.created_at]),
            ("id", "topic", "created_at")
        );
        assert_eq!(position(&names, "lane").unwrap(), 0);
    }

    #[test]
    fn a_missing_column_is_named() {
        let error = Positions::find(&["id", "topic"]).unwrap_err();
        assert!(
            error.to_string().contains("payload") && error.kind() == ErrorKind::Backend,
            "{error}"
        );
    }
}
