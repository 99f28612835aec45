//! What operators do with dead letters.

use std::collections::BTreeMap;
use std::time::Duration;

use sendoff_store_django_celery::{Dead, Purge, Settlement};

use crate::on_every_database;
use crate::scratch::{STALE, Scratch};

on_every_database! {
    dead_letters_come_back_as_if_they_were_new
    old_dead_letters_are_purged_and_young_ones_stay
    dead_letters_are_purged_by_age_and_name_and_counted_before
    the_tasks_that_fail_most_are_told
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
    assert_eq!(
        scratch.outbox.retry_dead(Some(&[dead[2], 999_999]), 10).await.unwrap(),
        1
    );
    assert_eq!(
        scratch.values("SELECT task_id FROM celery_outbox").await,
        [names[2].clone()]
    );
    assert_eq!(
        scratch.outbox.retry_dead(Some(&[dead[3], dead[1]]), 1).await.unwrap(),
        1
    );
    assert_eq!(scratch.outbox.retry_dead(Some(&[]), 10).await.unwrap(), 0);
    assert_eq!(scratch.outbox.retry_dead(None, 10).await.unwrap(), 2);
    assert_eq!(scratch.outbox.retry_dead(None, 10).await.unwrap(), 0);
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
    let week = Purge {
        older_than_dead: Some(Duration::from_secs(7 * 86_400)),
        ..Purge::default()
    };
    assert_eq!(scratch.outbox.purge(&week).await.unwrap(), counts(&[("shop.add", 2)]));
    assert_eq!(scratch.outbox.purge(&week).await.unwrap(), counts(&[]));
    assert_eq!(scratch.count("celery_outbox_dead_letter").await, "1");
}

fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
    of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

async fn dead_letters_are_purged_by_age_and_name_and_counted_before(scratch: Scratch) {
    let dead = bury(&scratch, 5).await;
    let names = ["shop.mail_a", "shop.mailxa", "Shop.mail_b", "shop[1].b%|", "other"];
    for (id, name) in dead.iter().zip(names) {
        scratch
            .run(&format!(
                "UPDATE celery_outbox_dead_letter SET task_name = '{name}' WHERE id = {id}"
            ))
            .await;
    }
    let hours = |hours: u64| Some(Duration::from_secs(hours * 3600));
    let old = scratch.moment(-2 * 3600);
    let age = |column: &str, at: usize| {
        format!(
            "UPDATE celery_outbox_dead_letter SET {column} = {old} WHERE id = {}",
            dead[at]
        )
    };
    scratch.run(&age("created_at", 4)).await;
    scratch.run(&age("dead_at", 3)).await;
    let purge = |dead, created, name: Option<&str>| Purge {
        older_than_dead: dead,
        older_than_created: created,
        task_name: name.map(str::to_owned),
    };
    for (which, expected) in [
        (purge(hours(1), None, None), &["shop[1].b%|"][..]),
        (purge(None, hours(1), None), &["other"]),
        (purge(hours(1), hours(1), None), &[]),
        (purge(hours(0), None, Some("shop.*")), &["shop.mail_a", "shop.mailxa"]),
        (purge(hours(0), None, Some("shop.mail_?")), &["shop.mail_a"]),
        (purge(hours(0), None, Some("shop[1].b%|")), &["shop[1].b%|"]),
        (purge(hours(0), None, Some("shop")), &[]),
        (purge(hours(0), None, Some("*")), &names),
    ] {
        let expected: Vec<(&str, u64)> = expected.iter().map(|name| (*name, 1)).collect();
        assert_eq!(
            scratch.outbox.purgeable(&which).await.unwrap(),
            counts(&expected),
            "{which:?}"
        );
    }
    let some = purge(hours(0), None, Some("shop.*"));
    assert_eq!(scratch.outbox.purge(&some).await.unwrap().len(), 2);
    let left = scratch
        .values("SELECT task_name FROM celery_outbox_dead_letter ORDER BY id")
        .await;
    assert_eq!(left, names[2..]);
}

async fn the_tasks_that_fail_most_are_told(scratch: Scratch) {
    for (name, retries) in [("a", 1), ("b", 4), ("c", 0), ("a", 2), ("d", 1)] {
        let id = scratch.add("NULL", "NULL", retries, 1).await;
        scratch
            .run(&format!(
                "UPDATE celery_outbox SET task_name = '{name}' WHERE id = {id}"
            ))
            .await;
    }
    let told = |of: &[(&str, u64)]| counts(of).into_iter().collect::<Vec<_>>();
    let mut most = scratch.outbox.failing(2).await.unwrap();
    assert_eq!(most[0].0, "b");
    most.sort();
    assert_eq!(most, told(&[("a", 3), ("b", 4)]));
    assert_eq!(scratch.outbox.failing(10).await.unwrap().len(), 3);
}
