//! A relay's fair share of the lanes.

use sendoff::store::{Lane, OwnerId};

/// How many lanes a relay should hold: shares are as equal as possible, and relays with the same list agree.
pub(crate) fn fair_share(lanes: Lane, relays: &[OwnerId], me: OwnerId) -> usize {
    let Some(rank) = relays.iter().position(|relay| *relay == me) else {
        return 0;
    };
    let (lanes, count) = (usize::from(lanes), relays.len());
    lanes / count + usize::from(rank < lanes % count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_fair_and_cover_every_lane() {
        for count in 1..=100 {
            let mut relays: Vec<OwnerId> = (0..count).map(|_| OwnerId::random()).collect();
            relays.sort_unstable();
            let shares: Vec<usize> = relays.iter().map(|relay| fair_share(80, &relays, *relay)).collect();
            assert_eq!(shares.iter().sum::<usize>(), 80);
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
        assert_eq!(fair_share(80, &[], OwnerId::random()), 0);
    }
}
