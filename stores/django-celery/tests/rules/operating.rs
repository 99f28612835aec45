//! What operators do with dead letters.

use std::time::Duration;

use sendoff_store_django_celery::{Dead, Settlement};

use crate::on_every_database;
use crate::scratch::{STALE, Scratch};

on_every_database! {
    dead_letters_come_back_as_if_they_were_new
    old_dead_letters_are_purged_and_young_ones_stay
}

async fn bury(scratch: &Scratch, count: usize) -> Vec<i64> {
    let ids = scratch.add_fresh(count).await;
    let claim = scratch.outbox.claim(1000, STALE).await.unwrap();
    let dead = ids
        .iter()
        .map(|id| Dead {
            id: *id,
            reason: "x".to_owned(),
        })
        .collect();
    let settlement = Settlement {
        dead,
        ..Settlement::default()
    };
    scratch.outbox.settle(&claim.stamp, &settlement).await.unwrap();
    let dead = scratch
        .values("SELECT id FROM celery_outbox_dead_letter ORDER BY id")
        .await;
    dead.iter().map(|id| id.parse().unwrap()).collect()
}

async fn dead_letters_come_back_as_if_they_were_new(scratch: Scratch) {
    let dead = bury(&scratch, 4).await;
    scratch.run("UPDATE celery_outbox_dead_letter SET retries = 4").await;
    let names = scratch
        .values("SELECT task_id FROM celery_outbox_dead_letter ORDER BY id")
        .await;
    assert_eq!(scratch.outbox.replay(Some(&[dead[2], 999_999]), 10).await.unwrap(), 1);
    assert_eq!(
        scratch.values("SELECT task_id FROM celery_outbox").await,
        [names[2].clone()]
    );
    assert_eq!(scratch.outbox.replay(Some(&[dead[3], dead[1]]), 1).await.unwrap(), 1);
    assert_eq!(scratch.outbox.replay(Some(&[]), 10).await.unwrap(), 0);
    assert_eq!(scratch.outbox.replay(None, 10).await.unwrap(), 2);
    assert_eq!(scratch.outbox.replay(None, 10).await.unwrap(), 0);
    let back = scratch.values("SELECT task_id FROM celery_outbox ORDER BY id").await;
    assert_eq!(back, [&names[2], &names[1], &names[0], &names[3]].map(Clone::clone));
    assert_eq!(scratch.value("SELECT SUM(retries) FROM celery_outbox").await, "0");
    let rows = scratch.outbox.claim(10, STALE).await.unwrap().rows;
    // A number as `expires` counts from here.
    assert!(
        rows.iter()
            .all(|row| row.created_at.elapsed().unwrap() < Duration::from_secs(40))
    );
    assert_eq!(rows[0].sentry_trace_id.as_deref(), Some("trace"));
}

async fn old_dead_letters_are_purged_and_young_ones_stay(scratch: Scratch) {
    let dead = bury(&scratch, 3).await;
    let month = scratch.moment(-30 * 86_400);
    scratch
        .run(&format!(
            "UPDATE celery_outbox_dead_letter SET dead_at = {month} WHERE id < {}",
            dead[2]
        ))
        .await;
    let week = Duration::from_secs(7 * 86_400);
    assert_eq!(scratch.outbox.purge(week).await.unwrap(), 2);
    assert_eq!(scratch.outbox.purge(week).await.unwrap(), 0);
    assert_eq!(scratch.count("celery_outbox_dead_letter").await, "1");
}
