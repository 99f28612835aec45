//! What lists have of this database: the lanes that an index starts with.

use sendoff::emit::{Dialect, Names};
use sendoff::store::{ListSources, ListTexts};

use crate::texts::whole;

/// The lanes of the ready table; see `list_next.sql`.
const READY_LANES: &str = "t.lane = ANY (ARRAY(SELECT lane FROM outbox_lane UNION ALL \
    SELECT DISTINCT lane FROM outbox_message WHERE lane < 0 OR lane > 79))";
const LANES: &str = "t.lane = ANY (ARRAY(SELECT lane FROM outbox_lane))";

/// The same for one key.
const READY_LANE: &str = "t.lane = ANY (ARRAY(SELECT outbox_lane_of({key}::text, 0, NULL, 0::smallint) UNION ALL \
    SELECT DISTINCT lane FROM outbox_message WHERE lane < 0 OR lane > 79))";
const LANE: &str = "t.lane = outbox_lane_of({key}::text, 0, NULL, 0::smallint)";

/// The statements of lists. No index of delivered messages has the lane.
pub(crate) fn list_texts(names: &Names) -> [[ListTexts; 2]; 4] {
    let sources = ListSources {
        dialect: Dialect::Postgres,
        list: &whole(include_str!("../../sql/list.sql")),
        listed: include_str!("../../sql/listed.sql"),
        next: include_str!("../../sql/list_next.sql"),
        lanes: [READY_LANES, LANES, LANES, ""],
        lanes_of_key: [READY_LANE, LANE, LANE, "{key}::text IS NOT NULL"],
    };
    ListTexts::all(names, &sources)
}
