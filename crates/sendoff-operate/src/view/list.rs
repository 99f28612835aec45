//! A page of messages.

use sendoff::store::Listing;
use serde::Serialize;

use super::MessageView;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListView {
    /// Oldest first; each with one leg.
    pub messages: Vec<MessageView>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl From<Listing> for ListView {
    fn from(listing: Listing) -> Self {
        let messages = listing.messages.into_iter();
        Self {
            messages: messages
                .filter_map(|stored| MessageView::of_legs(vec![stored]))
                .collect(),
            more: listing.more,
        }
    }
}
