//! What a key at a sink should know, kept as plain lists.

use super::*;

#[derive(Debug, Default, Clone)]
pub(super) struct Model {
    pub(super) queue: Vec<Member>,
    pub(super) blocked: bool,
    /// Messages with a verdict that makes others wait, until it is written.
    pub(super) on_their_way: Vec<Ticket>,
    /// The last failed number, and whether it is written.
    pub(super) failure: Option<(i64, bool)>,
    /// The undecided message, and those behind it.
    pub(super) behind: Option<(EntryId, Vec<Member>)>,
}

impl Model {
    pub(super) fn arrives(&mut self, member: Member, origin: Origin, joins: bool) -> Arrival {
        let has_to_wait = match origin {
            Origin::New => self.blocked && !self.queue.iter().any(|other| other.is_ready && other.seq < member.seq),
            Origin::Waiting { .. } => self.failure.is_some_and(|(seq, _)| seq < member.seq),
        };
        if has_to_wait {
            return Arrival::Blocked;
        }
        self.blocked |= origin == Origin::Waiting { parked: false };
        if joins {
            self.queue.push(member);
        }
        if joins && self.queue.len() > 1 {
            Arrival::Behind
        } else {
            Arrival::First
        }
    }

    pub(super) fn has_to_wait(&mut self, member: Member) -> bool {
        match &mut self.behind {
            Some((_, behind)) => {
                behind.push(member);
                false
            }
            None => true,
        }
    }

    pub(super) fn decided(&mut self, member: Member, followers: Followers, is_open: bool) -> Next {
        if followers == Followers::GoOnceSettled || followers == Followers::Go {
            self.failure = self.failure.filter(|(seq, _)| *seq != member.seq);
        }
        match followers {
            Followers::Go => self.pass(member).map_or(Next::Nothing, Next::Send),
            Followers::GoOnceSettled => Next::Nothing,
            Followers::Wait { failed } => {
                if is_open && self.behind.is_none() {
                    self.behind = Some((member.ticket.entry, Vec::new()));
                }
                if failed {
                    self.failure = Some((member.seq, false));
                }
                self.blocked = true;
                self.on_their_way.push(member.ticket);
                let is_first = self.queue.first() == Some(&member);
                self.leaves(member.ticket);
                Next::Wait(if is_first {
                    self.queue.drain(..).collect()
                } else {
                    VecDeque::new()
                })
            }
        }
    }

    /// One is done: the one behind it is next.
    fn pass(&mut self, member: Member) -> Option<Ticket> {
        let is_first = self.queue.first() == Some(&member);
        self.leaves(member.ticket);
        self.queue.first().filter(|_| is_first).map(|next| next.ticket)
    }

    pub(super) fn complete(&mut self, entry: EntryId) -> Vec<Member> {
        let opened = self.behind.take_if(|(undecided, _)| *undecided == entry);
        opened.map_or_else(Vec::new, |(_, behind)| behind)
    }

    pub(super) fn written(&mut self, member: Member, followers: Followers) -> Option<Ticket> {
        match followers {
            Followers::Go => None,
            Followers::GoOnceSettled => self.pass(member),
            Followers::Wait { .. } => {
                self.on_their_way.retain(|ticket| *ticket != member.ticket);
                let is_it = |(seq, _): &(i64, bool)| *seq == member.seq;
                self.failure = self.failure.map(|failure| (failure.0, failure.1 || is_it(&failure)));
                None
            }
        }
    }

    pub(super) fn freed(&mut self) {
        self.blocked &= !self.on_their_way.is_empty();
    }

    pub(super) fn leaves(&mut self, ticket: Ticket) {
        self.queue.retain(|member| member.ticket != ticket);
    }
}
