//! Parses stored tasks.

mod call;
mod options;

pub use call::TaskCall;
pub use options::TaskOptions;
