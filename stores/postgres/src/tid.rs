//! The position of a row in its table: a block, and a place in the block.
//!
//! Rows of the ready table are never updated, so their position stays the same until they are deleted. Only a rewrite
//! of the whole table (`VACUUM FULL`) moves them. A free position may be used for another row, so code that uses a
//! position also checks the row's number.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// A `ctid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tid {
    block: u32,
    offset: u16,
}

impl Tid {
    pub(crate) fn from_locator(locator: u64) -> Self {
        let [.., b0, b1, b2, b3, o0, o1] = locator.to_be_bytes();
        Self {
            block: u32::from_be_bytes([b0, b1, b2, b3]),
            offset: u16::from_be_bytes([o0, o1]),
        }
    }

    /// Never 0: offsets begin at 1.
    pub(crate) fn to_locator(self) -> u64 {
        u64::from(self.block) << 16 | u64::from(self.offset)
    }
}

impl<'a> FromSql<'a> for Tid {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let [b0, b1, b2, b3, o0, o1] = *raw else {
            return Err("a ctid has six bytes".into());
        };
        Ok(Self {
            block: u32::from_be_bytes([b0, b1, b2, b3]),
            offset: u16::from_be_bytes([o0, o1]),
        })
    }

    accepts!(TID);
}

impl ToSql for Tid {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_u32(self.block);
        out.put_u16(self.offset);
        Ok(IsNull::No)
    }

    accepts!(TID);
    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_ref_survives_as_a_number() {
        let tid = Tid {
            block: u32::MAX,
            offset: 291,
        };
        assert_eq!(Tid::from_locator(tid.to_locator()), tid);
        assert_eq!(Tid { block: 0, offset: 1 }.to_locator(), 1);
    }
}
