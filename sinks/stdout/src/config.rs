//! The settings of the sink.

use serde::{Deserialize, Serialize};

/// Settings of the stdout sink. There are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdoutConfig {}
