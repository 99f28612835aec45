//! What a sink may lack, and how one sees that it does.

use std::time::Duration;

use sendoff::Outcome;
use tokio::time::timeout;

use super::Capabilities;
use super::message::{large, numbered};
use super::scene::Scene;
use crate::Fault;

/// Something that a case needs and not every sink has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    MaxSize,
    Unroutable,
    Restart,
    Handshake,
}

impl Need {
    pub(super) fn is_met_by(self, capabilities: Capabilities) -> bool {
        match self {
            Self::MaxSize => capabilities.max_size.is_some(),
            Self::Unroutable => capabilities.unroutable,
            Self::Restart => capabilities.restart,
            Self::Handshake => capabilities.handshake,
        }
    }

    /// Fails when the sink has it after all: then it has to declare it, and is held to it.
    pub(super) async fn is_really_missing(self, mut scene: Scene) {
        let sink = scene.sink();
        match self {
            Self::MaxSize => {
                let huge = large(1 << 20);
                assert_eq!(sink.publish(std::slice::from_ref(&huge)).await, [Outcome::Delivered]);
                let copies = scene.copies_of(std::slice::from_ref(&huge)).await;
                assert!(copies[0].payload == huge.payload, "a large message came changed");
            }
            Self::Unroutable => {
                let mut unheard = (*numbered(1)).clone();
                unheard.topic = format!("suite.unheard.{}", unheard.id.simple());
                assert_eq!(sink.publish(&[unheard.into()]).await, [Outcome::Delivered]);
            }
            // It cannot be killed, but the way to it can be closed.
            Self::Restart => {
                scene.proxy.set(Fault::Refuse);
                let outcomes = sink.publish(&[numbered(1)]).await;
                assert!(!outcomes.contains(&Outcome::Delivered), "{outcomes:?}");
                scene.proxy.set(Fault::Pass);
                scene.deliver(&sink, &[numbered(2)]).await;
            }
            Self::Handshake => {
                scene.proxy.set(Fault::HoldAnswers);
                let held = timeout(Duration::from_secs(1), sink.publish(&[numbered(1)])).await;
                let delivered = held.is_ok_and(|outcomes| outcomes.contains(&Outcome::Delivered));
                assert!(!delivered, "delivered without an answer");
            }
        }
    }
}
