//! Python values: parsed from JSON, written as JSON and YAML, and printed by `repr`.

mod decimal;
mod float;
mod json_read;
mod json_write;
mod repr;
mod text;
mod typed;
mod value;
mod yaml;

pub use json_read::read_json;
pub use json_write::{write_json, write_json_list, write_json_map};
pub use repr::{saferepr_of_args, saferepr_of_kwargs};
pub use text::Text;
pub use value::Value;
pub use yaml::write_yaml;
