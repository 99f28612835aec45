//! Random events at two keys, two lanes and two sinks, against the model.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::Model;
use super::*;

/// Something that happens. Numbers choose among what is there.
#[derive(Debug, Clone)]
enum Event {
    Arrives {
        lane: Lane,
        key: &'static str,
        sinks: usize,
        origin: u8,
    },
    /// The first of a queue has a verdict.
    Decided(usize, Followers),
    /// A message with all its verdicts is written.
    Written(usize),
    Freed(usize),
    KnownBlocked(usize),
    Dropped(usize),
    ReadBegins,
    Lost(Lane),
}

fn event() -> impl Strategy<Value = Event> {
    let followers = prop_oneof![
        4 => Just(Followers::Go),
        2 => Just(Followers::GoOnceSettled),
        3 => Just(Followers::Wait { failed: true }),
    ];
    prop_oneof![
        8 => (1..3u16, prop_oneof![Just("j"), Just("k")], 0..3usize, 0..4u8).prop_map(|(lane, key, sinks, origin)| {
            Event::Arrives { lane: lane as Lane, key, sinks, origin }
        }),
        8 => (any::<usize>(), followers).prop_map(|(which, followers)| Event::Decided(which, followers)),
        6 => any::<usize>().prop_map(Event::Written),
        3 => any::<usize>().prop_map(Event::Freed),
        1 => any::<usize>().prop_map(Event::KnownBlocked),
        1 => any::<usize>().prop_map(Event::Dropped),
        2 => Just(Event::ReadBegins),
        1 => (1..3u16).prop_map(|lane| Event::Lost(lane as Lane)),
    ]
}

struct Message {
    at: Vec<(KeyRef, Option<Followers>)>,
    member: Member,
}

#[derive(Default)]
struct Pair {
    order: KeyOrder,
    model: BTreeMap<KeyRef, Model>,
    ids: Ids,
    messages: Vec<Message>,
    seq: i64,
}

impl Pair {
    fn model(&mut self, at: &KeyRef) -> &mut Model {
        self.model.entry(at.clone()).or_default()
    }

    fn member_at(message: &Message, delivery: usize) -> Member {
        let mut member = message.member;
        member.ticket.delivery = delivery;
        member
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Arrives {
                lane,
                key,
                sinks,
                origin,
            } => self.arrives(lane, key, sinks, origin),
            Event::Decided(which, followers) => {
                let firsts: Vec<Member> = self
                    .model
                    .values()
                    .filter_map(|model| model.queue.first().copied())
                    .collect();
                if let Some(first) = pick(&firsts, which) {
                    self.decided(first.ticket, followers);
                }
            }
            Event::Written(which) => self.written(which),
            Event::Freed(which) => {
                let known: Vec<KeyRef> = self.model.keys().cloned().collect();
                if let Some(KeyRef { lane, key, sink }) = pick(&known, which) {
                    self.model
                        .get_mut(&KeyRef {
                            lane,
                            key: key.clone(),
                            sink: sink.clone(),
                        })
                        .unwrap()
                        .freed();
                    self.order.freed(&BlockedKey { lane, key, sink });
                }
            }
            Event::KnownBlocked(which) => {
                let known: Vec<KeyRef> = self.model.keys().cloned().collect();
                if let Some(at) = pick(&known, which) {
                    self.model(&at).blocked = true;
                    self.order.known_blocked(at);
                }
            }
            Event::Dropped(which) => {
                let idle = |message: &&Message| message.at.iter().all(|(_, verdict)| verdict.is_none());
                let idle: Vec<Ticket> = self
                    .messages
                    .iter()
                    .filter(idle)
                    .map(|message| message.member.ticket)
                    .collect();
                if let Some(ticket) = pick(&idle, which) {
                    self.drop(ticket.entry);
                }
            }
            Event::ReadBegins => {
                self.order.read_begins(|lane| lane == 2);
                for (at, model) in &mut self.model {
                    model.failure = model.failure.filter(|(_, written)| !written || at.lane == 2);
                }
            }
            Event::Lost(lane) => {
                self.messages.retain(|message| message.at[0].0.lane != lane);
                self.model.retain(|at, _| at.lane != lane);
                self.order.lose(&[lane]);
            }
        }
    }

    fn arrives(&mut self, lane: Lane, key: &str, sinks: usize, origin: u8) {
        self.seq += 1;
        // One that comes back may have a low number.
        let seq = if origin >= 2 { self.seq / 2 } else { self.seq };
        let sinks = if origin >= 2 {
            &["a"][..]
        } else {
            [&["a"][..], &["b"], &["a", "b"]][sinks]
        };
        let at = |sink: &&str| KeyRef {
            lane,
            key: key.into(),
            sink: (*sink).into(),
        };
        let origin = match origin {
            0 | 1 => Origin::New,
            2 => Origin::Waiting { parked: false },
            _ => Origin::Waiting { parked: true },
        };
        let member = Member {
            ticket: self.ids.ticket(),
            seq,
            is_ready: origin == Origin::New && seq % 5 > 0,
        };
        let at: Vec<(KeyRef, Option<Followers>)> = sinks.iter().map(|sink| (at(sink), None)).collect();
        self.messages.push(Message { at: at.clone(), member });
        for (delivery, (at, _)) in at.iter().enumerate() {
            let mut member = member;
            member.ticket.delivery = delivery;
            let arrival = self.order.arrives(at.clone(), member, origin, true);
            assert_eq!(arrival, self.model(at).arrives(member, origin, true));
            if arrival == Arrival::Blocked {
                self.has_to_wait(member);
            }
        }
    }

    fn has_to_wait(&mut self, member: Member) {
        let Some(at) = self
            .find(member.ticket)
            .map(|message| message.at[member.ticket.delivery].0.clone())
        else {
            return;
        };
        let is_blocked = self.order.has_to_wait(&at, member);
        assert_eq!(is_blocked, self.model(&at).has_to_wait(member));
        if is_blocked {
            self.decided(member.ticket, Followers::Wait { failed: false });
        }
    }

    fn find(&mut self, ticket: Ticket) -> Option<&mut Message> {
        self.messages
            .iter_mut()
            .find(|message| message.member.ticket.entry == ticket.entry)
    }

    fn decided(&mut self, ticket: Ticket, followers: Followers) {
        let Some(message) = self.find(ticket) else { return };
        let (at, verdict) = &mut message.at[ticket.delivery];
        if verdict.is_some() {
            return;
        }
        *verdict = Some(followers);
        let (at, member) = (at.clone(), Self::member_at(message, ticket.delivery));
        let is_open = message.at.iter().any(|(_, verdict)| verdict.is_none());
        let all: Vec<KeyRef> = message.at.iter().map(|(at, _)| at.clone()).collect();
        let next = self.order.decided(&at, member, followers, is_open);
        assert_eq!(next, self.model(&at).decided(member, followers, is_open));
        if let Next::Wait(behind) = next {
            behind.into_iter().for_each(|member| self.has_to_wait(member));
        }
        if !is_open {
            for at in all {
                let behind = self.order.complete(&at, ticket.entry);
                assert_eq!(behind, self.model(&at).complete(ticket.entry));
                behind.into_iter().for_each(|member| self.has_to_wait(member));
            }
        }
    }

    fn written(&mut self, which: usize) {
        let complete = |message: &&Message| message.at.iter().all(|(_, verdict)| verdict.is_some());
        let complete: Vec<Ticket> = self
            .messages
            .iter()
            .filter(complete)
            .map(|message| message.member.ticket)
            .collect();
        let Some(ticket) = pick(&complete, which) else { return };
        let Some(message) = self.find(ticket) else { return };
        let deliveries: Vec<(KeyRef, Followers, Member)> = (message.at.iter().enumerate())
            .filter_map(|(at, (key, verdict))| Some((key.clone(), (*verdict)?, Self::member_at(message, at))))
            .collect();
        for (at, followers, member) in deliveries {
            let next = self.order.written(&at, member, followers);
            assert_eq!(next, self.model(&at).written(member, followers));
        }
        self.drop(ticket.entry);
    }

    fn drop(&mut self, entry: EntryId) {
        let Some(at) = self
            .messages
            .iter()
            .position(|message| message.member.ticket.entry == entry)
        else {
            return;
        };
        let message = self.messages.remove(at);
        for (delivery, (at, _)) in message.at.iter().enumerate() {
            let ticket = Ticket { entry, delivery };
            self.order.leaves(at, ticket);
            self.model(at).leaves(ticket);
        }
    }

    /// The machine knows what the model knows, and keeps nothing that is free.
    fn check(&self) {
        for (at, model) in &self.model {
            let key = self.order.keys.get(at).cloned().unwrap_or_default();
            assert_eq!(members(&key).copied().collect::<Vec<_>>(), model.queue);
            assert_eq!(key.blocked.is_some(), model.blocked);
            let on_their_way = key.blocked.map_or(0, |blocked| blocked.unwritten as usize);
            assert_eq!(on_their_way, model.on_their_way.len());
            assert_eq!(key.failure.map(|failure| (failure.seq, failure.written)), model.failure);
            let behind = key
                .undecided
                .as_ref()
                .map(|undecided| undecided.queue.iter().copied().collect());
            assert_eq!(behind, model.behind.as_ref().map(|(_, behind)| behind.clone()));
            let is_undecided = self.order.state(at) == State::Undecided;
            assert!(!is_undecided || model.blocked, "an undecided key is blocked");
        }
        let undecided = self.model.values().any(|model| model.behind.is_some());
        assert_eq!(self.order.has_undecided(), undecided);
        assert!(
            self.order
                .keys
                .iter()
                .all(|(at, key)| !key.is_idle() && self.model.contains_key(at))
        );
        let remembers = |at: &KeyRef| self.order.failures.contains(at);
        let failures = self.model.iter().filter(|(_, model)| model.failure.is_some());
        assert!(
            failures.into_iter().all(|(at, _)| remembers(at)),
            "a read would not see it"
        );
    }
}

fn pick<T: Clone>(from: &[T], which: usize) -> Option<T> {
    from.get(which.checked_rem(from.len())?).cloned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_does_what_the_model_does(events in vec(event(), 1..120)) {
        let mut pair = Pair::default();
        for event in events {
            pair.happens(event);
            pair.check();
        }
    }
}
