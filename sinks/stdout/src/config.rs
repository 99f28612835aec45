//! The settings of the sink.

use serde::{Deserialize, Serialize};

/// The sink has no settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdoutConfig {}
