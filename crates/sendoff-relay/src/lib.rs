//! The relay of Sendoff: claims messages by lanes, publishes them, settles, retries, dead-letters
