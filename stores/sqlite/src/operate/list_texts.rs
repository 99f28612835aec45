//! What lists have of this database: the lanes that an index starts with.

use sendoff::emit::{Dialect, Names};
use sendoff::store::{ListSources, ListTexts};

use crate::sql::whole;

/// The primary keys of waiting and dead rows start with the lane.
const LANES: &str = "t.lane IN (SELECT lane FROM outbox_lane)";

/// The migration, whose expression is the only one that computes lanes.
const MIGRATION: &str = include_str!("../../migrations/0001_outbox.sql");

/// The statements of lists. Ready and delivered messages have no index by lane.
pub(crate) fn list_texts(names: &Names) -> [[ListTexts; 2]; 4] {
    let expression = MIGRATION
        .split_once("WHEN key IS NOT NULL THEN ")
        .and_then(|(_, rest)| rest.split_once("WHEN priority = 0"))
        .map_or("NULL", |(expression, _)| expression.trim());
    let lane = format!("t.lane = {}", expression.replace("key", "{key}"));
    let sources = ListSources {
        dialect: Dialect::Sqlite,
        list: &whole(include_str!("../../sql/list.sql")),
        listed: include_str!("../../sql/listed.sql"),
        next: include_str!("../../sql/list_next.sql"),
        lanes: ["", LANES, LANES, ""],
        lanes_of_key: ["{key} IS NOT NULL", &lane, &lane, "{key} IS NOT NULL"],
    };
    ListTexts::all(names, &sources)
}
