//! What lists have of this database: the lanes that an index starts with.

use sendoff::emit::{Dialect, Names};
use sendoff::store::{ListSources, ListTexts};

use crate::texts::whole;

/// The primary keys of waiting and dead rows start with the lane.
const LANES: &str = "t.lane IN (SELECT lane FROM outbox_lane)";

/// The lane of one key; see the trigger. The ready table has scheduled messages in lane 80, whatever their key.
const READY_LANE: &str = "t.lane IN (CRC32({key}) % 64, 80)";
const LANE: &str = "t.lane = CRC32({key}) % 64";

/// The statements of lists. No index of delivered messages has the lane.
pub(crate) fn list_texts(names: &Names) -> [[ListTexts; 2]; 4] {
    let sources = ListSources {
        dialect: Dialect::Mysql,
        list: &whole(include_str!("../../sql/list.sql")),
        listed: include_str!("../../sql/listed.sql"),
        next: include_str!("../../sql/list_next.sql"),
        lanes: ["t.lane <= 80", LANES, LANES, ""],
        lanes_of_key: [READY_LANE, LANE, LANE, "{key} IS NOT NULL"],
    };
    ListTexts::all(names, &sources)
}
