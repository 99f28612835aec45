//! Everybody at once: what gets in each other's way is the store's business and nobody else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use sendoff::store::{
    Command, DeadReason, DeliverySettlement, EmitStore, Filter, OperateStore, OwnerId, Pausable, ReadRequest,
    RelayCard, RelayStore, Retention, RetryOptions, RetryState, Settlement, Verdict,
};
use sendoff_store_mysql::MysqlStore;
use tokio::task::JoinSet;

use crate::scratch::{LEASE, Scratch, connect, message};

const EMITTERS: u64 = 6;
const ROUNDS: u64 = 60;

/// How often the server found a deadlock. Kept by MariaDB and by MySQL, under the same name.
async fn deadlocks() -> u64 {
    let sql = "SELECT `count` FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'";
    let mut conn = connect().await;
    let _ = conn
        .query_drop("SET GLOBAL innodb_monitor_enable = 'lock_deadlocks'")
        .await;
    conn.query_first(sql).await.unwrap().unwrap_or_default()
}

async fn emitter(store: MysqlStore, number: u64) -> sendoff::Result<()> {
    for round in 0..ROUNDS {
        let mut tx = store.begin().await?;
        let key = format!("k{}", round % 7);
        tx.emit(&[
            message("a").key(&key),
            message("a").idempotency_key(format!("{}", round % 20)),
            message("b").key(&key).delay(Duration::from_millis(5)),
        ])
        .await?;
        if (round + number).is_multiple_of(9) {
            tx.rollback().await?;
        } else {
            tx.commit().await?;
        }
    }
    Ok(())
}

/// Fails, holds, kills and delivers, several settlements at a time, until it is told to stop and nothing is left to do.
async fn relay(store: MysqlStore, number: u64, lanes: usize, stop: Arc<AtomicBool>) -> sendoff::Result<()> {
    let owner = OwnerId::random();
    store
        .register(owner, &RelayCard::named(format!("relay {number}")), LEASE)
        .await?;
    let grants = store.acquire(owner, lanes).await?;
    let mut reader = store.reader();
    reader.gained(&grants);
    let mut rng = fastrand::Rng::with_seed(number);
    let mut settled = Vec::new();
    let numbers: Vec<_> = grants.iter().map(|grant| grant.lane).collect();
    loop {
        let request = ReadRequest {
            limit: 50,
            settled: std::mem::take(&mut settled),
            due: true,
            ready: true,
            ..ReadRequest::default()
        };
        let page = reader.read(request).await?;
        if page.rows.is_empty() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let settlements: Vec<Settlement> = page
            .rows
            .iter()
            .map(|row| {
                let sendoff::store::Row::Message(outgoing) = row else {
                    panic!("{row:?}");
                };
                let lane = outgoing.row_ref.lane;
                Settlement {
                    row_ref: outgoing.row_ref.clone(),
                    epoch: grants.iter().find(|grant| grant.lane == lane).unwrap().epoch,
                    deliveries: verdict(&mut rng, outgoing.attempts),
                    key: outgoing.key.as_deref().map(Arc::from),
                    attempts: outgoing.attempts,
                }
            })
            .collect();
        let parts = settlements.chunks(10).map(|part| store.settle(owner, part));
        for report in futures_all(parts.collect()).await {
            assert!(report?.lost.is_empty());
        }
        settled = settlements.into_iter().map(|settlement| settlement.row_ref).collect();
        let beat = store.heartbeat(owner, LEASE).await?;
        assert!(beat.alive);
        store.release_orphans(owner, &numbers).await?;
        store.clean(100).await?;
        store.evict().await?;
    }
    store.deregister(owner).await
}

fn verdict(rng: &mut fastrand::Rng, attempts: u32) -> Vec<DeliverySettlement> {
    let verdict = match rng.u8(0..10) {
        _ if attempts > 2 => return Vec::new(),
        0..2 => Verdict::Retry {
            state: RetryState::Retry,
            delay: Duration::from_millis(rng.u64(0..20)),
            charged: true,
            error: "try again".to_owned(),
        },
        2 => Verdict::Blocked,
        3 => Verdict::Dead {
            reason: DeadReason::Permanent,
            error: "no".to_owned(),
            charged: true,
            blocks: true,
        },
        _ => return Vec::new(),
    };
    vec![DeliverySettlement {
        sink: Arc::from("sink"),
        verdict,
    }]
}

async fn futures_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).map(Some).collect();
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        let mut pending = false;
        for (future, done) in running.iter_mut().zip(&mut done) {
            if let Some(running) = future {
                match running.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => (*done, *future) = (Some(value), None),
                    std::task::Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn operator(store: MysqlStore, stop: Arc<AtomicBool>, acts: Arc<AtomicU64>) -> sendoff::Result<()> {
    let everything = Filter::default();
    let topic = Pausable::Topic("a".to_owned());
    while !stop.load(Ordering::Relaxed) {
        store.retry_dead(&everything, None, 20, &mut Command::by("ann")).await?;
        let how = RetryOptions {
            reset: true,
            scheduled: true,
        };
        store
            .retry_waiting(&everything, how, None, 20, &mut Command::by("ann"))
            .await?;
        store.reap_gone(Duration::from_secs(3600), "ann").await?;
        store.release_key("k1", None, "ann").await?;
        store
            .discard_dead(&everything, None, 1, &mut Command::by("ann"))
            .await?;
        store.pause(&topic, "ann").await?;
        store.resume(&topic, "ann").await?;
        store
            .clean_up(
                &Retention {
                    delivered: None,
                    dead: Some(Duration::from_secs(3600)),
                    dedup: true,
                    inbox: Some(Duration::from_secs(3600)),
                },
                10,
                &mut Command::by("ann"),
            )
            .await?;
        store.list(&everything, 10).await?;
        store.keys(10).await?;
        acts.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_deadlock_and_no_lock_timeout_reaches_a_caller() {
    let scratch = Scratch::new().await;
    let before = deadlocks().await;
    let (stop, acts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (mut emitters, mut others) = (JoinSet::new(), JoinSet::new());
    for number in 0..EMITTERS {
        emitters.spawn(emitter(scratch.store.clone(), number));
    }
    for number in 0..2 {
        others.spawn(relay(scratch.store.clone(), number, 40, stop.clone()));
    }
    for _ in 0..2 {
        others.spawn(operator(scratch.store.clone(), stop.clone(), acts.clone()));
    }
    for done in emitters.join_all().await {
        done.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for done in others.join_all().await {
        done.unwrap();
    }
    // What is left can be brought to its end: no message is stuck, or in two places.
    assert!(acts.load(Ordering::Relaxed) > 0);
    let twice =
        "SELECT count(*) FROM outbox_message AS m JOIN outbox_waiting AS w ON w.lane = m.lane AND w.seq = m.seq";
    assert_eq!(scratch.value(twice).await, "0");
    let met = deadlocks().await - before;
    println!("the server resolved {met} deadlocks; no caller saw one");
}
