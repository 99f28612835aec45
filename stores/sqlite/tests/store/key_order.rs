use sendoff::store::{BlockedKey, Command, Filter, OperateStore, RelayStore, SettleReport, Verdict};

use crate::outbox::{TestOutbox, TestRelay, dead, down, keyed, parked, retry, text};

/// An outbox whose messages of one key, but for the delivered ones, wait for the delivery `audit`, each with the verdict.
async fn waiting(verdicts: &[Verdict]) -> (TestOutbox, TestRelay) {
    let outbox = TestOutbox::new().await;
    let payloads: Vec<String> = (1..=verdicts.len()).map(|n| n.to_string()).collect();
    let payloads: Vec<&str> = payloads.iter().map(String::as_str).collect();
    outbox.emit(&keyed("k", &payloads)).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    let settlements: Vec<_> = rows
        .iter()
        .zip(verdicts)
        .map(|(row, verdict)| relay.settlement(row, &[("audit", verdict.clone())]))
        .collect();
    relay.settle_all(&settlements).await;
    (outbox, relay)
}

/// The queue of the key: payload, state, and whether it has a due time.
fn queue(outbox: &TestOutbox) -> String {
    let sql = "SELECT coalesce(group_concat(
                   CAST(payload AS TEXT) || ':' || state || iif(due_at IS NULL, '', ':due'), ' '), '')
               FROM (SELECT * FROM outbox_waiting ORDER BY seq)";
    outbox.ask(sql)
}

fn let_all_be_due(outbox: &TestOutbox) {
    outbox.run("UPDATE outbox_waiting SET due_at = 1 WHERE due_at IS NOT NULL");
}

async fn settle_next(relay: &mut TestRelay, verdict: Verdict) -> SettleReport {
    let row = relay.outgoing().await.into_iter().next().unwrap();
    relay.settle(&row, &[("audit", verdict)]).await
}

fn freed(report: &SettleReport) -> Vec<(&str, &str)> {
    report.freed.iter().map(|freed| (&*freed.key, &*freed.sink)).collect()
}

#[tokio::test]
async fn followers_are_held_behind_a_head_that_is_retried() {
    let (outbox, mut relay) = waiting(&[retry(60), Verdict::Blocked, Verdict::Blocked]).await;
    assert_eq!(queue(&outbox), "1:retry:due 2:blocked 3:blocked");
    assert!(relay.read().await.is_empty());
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    let blocked = outbox.store.blocked_keys(&lanes).await.unwrap();
    let key = BlockedKey {
        lane: blocked[0].lane,
        key: "k".into(),
        sink: "audit".into(),
    };
    assert_eq!(blocked, [key]);
}

#[tokio::test]
async fn the_order_of_settlements_does_not_matter_to_a_hold() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2", "3"])).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    let settlements = [
        relay.settlement(&rows[2], &[("audit", Verdict::Blocked)]),
        relay.settlement(&rows[1], &[("audit", Verdict::Blocked)]),
        relay.settlement(&rows[0], &[("audit", down(60))]),
    ];
    let report = relay.settle_all(&settlements).await;
    assert_eq!(queue(&outbox), "1:deferred:due 2:blocked 3:blocked");
    assert!(!report.woke);
}

#[tokio::test]
async fn followers_go_on_when_the_head_is_delivered() {
    let (outbox, mut relay) = waiting(&[retry(60), Verdict::Blocked, Verdict::Blocked]).await;
    let_all_be_due(&outbox);
    let report = settle_next(&mut relay, Verdict::Delivered).await;
    assert!(report.woke && report.freed.is_empty());
    assert_eq!(queue(&outbox), "2:blocked:due 3:blocked:due");
    assert_eq!(relay.payloads().await, ["2", "3"]);
}

#[tokio::test]
async fn a_key_is_free_when_the_last_of_it_is_delivered() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked]).await;
    assert!(settle_next(&mut relay, Verdict::Delivered).await.freed.is_empty());
    let report = settle_next(&mut relay, Verdict::Delivered).await;
    assert_eq!(freed(&report), [("k", "audit")]);
    assert!(!report.woke);
    assert_eq!(queue(&outbox), "");
}

#[tokio::test]
async fn sixty_four_followers_are_let_go_at_a_time() {
    let mut verdicts = vec![retry(0)];
    verdicts.resize(100, Verdict::Blocked);
    let (outbox, mut relay) = waiting(&verdicts).await;
    settle_next(&mut relay, Verdict::Delivered).await;
    let due = relay.payloads().await;
    assert_eq!(due, (2..=65).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(
        outbox.ask::<i64>("SELECT count(*) FROM outbox_waiting WHERE due_at IS NULL"),
        35
    );
}

#[tokio::test]
async fn followers_that_were_let_go_are_held_back_when_one_before_them_fails() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked, Verdict::Blocked, Verdict::Blocked]).await;
    settle_next(&mut relay, Verdict::Delivered).await;
    assert_eq!(queue(&outbox), "2:blocked:due 3:blocked:due 4:blocked:due");
    let rows = relay.outgoing().await;
    let report = relay.settle(&rows[0], &[("audit", retry(60))]).await;
    assert_eq!(queue(&outbox), "2:retry:due 3:blocked 4:blocked");
    assert!(report.freed.is_empty() && !report.woke);
}

#[tokio::test]
async fn followers_stay_held_behind_an_earlier_one_that_is_backing_off() {
    // 2 is let go by 1 and fails; 3, which had been sent with it, is delivered: 4 must not overtake 2.
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked, Verdict::Blocked, Verdict::Blocked]).await;
    settle_next(&mut relay, Verdict::Delivered).await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[("audit", retry(60))]).await;
    let report = relay.settle(&rows[1], &[]).await;
    assert_eq!(queue(&outbox), "2:retry:due 4:blocked");
    assert!(!report.woke);
}

#[tokio::test]
async fn a_dead_head_that_blocks_holds_its_followers_until_an_operator_acts() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked, Verdict::Blocked]).await;
    let report = settle_next(&mut relay, dead(true)).await;
    assert_eq!(queue(&outbox), "2:blocked 3:blocked");
    assert!(!report.woke && report.freed.is_empty());
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    assert_eq!(outbox.store.blocked_keys(&lanes).await.unwrap().len(), 1);
    assert_eq!(outbox.store.release_orphans(relay.owner, &lanes).await.unwrap(), 0);

    assert_eq!(
        outbox
            .store
            .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("ops"))
            .await
            .unwrap(),
        1
    );
    assert_eq!(queue(&outbox), "1:retry:due 2:blocked 3:blocked");
    settle_next(&mut relay, Verdict::Delivered).await;
    assert_eq!(relay.payloads().await, ["2", "3"]);
}

#[tokio::test]
async fn a_dead_ready_row_that_blocks_holds_those_behind_it() {
    let (outbox, mut relay) = waiting(&[dead(true), Verdict::Blocked]).await;
    assert_eq!(queue(&outbox), "2:blocked");
    assert!(relay.read().await.is_empty());
    outbox.run("DELETE FROM outbox_dead");
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    assert_eq!(outbox.store.release_orphans(relay.owner, &lanes).await.unwrap(), 1);
    assert_eq!(relay.payloads().await, ["2"]);
}

#[tokio::test]
async fn a_dead_head_that_does_not_block_lets_its_followers_go() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked]).await;
    let report = settle_next(&mut relay, dead(false)).await;
    assert!(report.woke);
    assert_eq!(queue(&outbox), "2:blocked:due");
}

#[tokio::test]
async fn a_head_that_is_parked_lets_its_followers_go() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked]).await;
    let report = settle_next(&mut relay, parked(60)).await;
    assert!(report.woke);
    assert_eq!(queue(&outbox), "1:parked:due 2:blocked:due");
    let report = settle_next(&mut relay, Verdict::Delivered).await;
    assert_eq!(freed(&report), [("k", "audit")], "a parked message does not block");
}

#[tokio::test]
async fn a_hold_without_anything_to_wait_for_is_due_at_once() {
    let (outbox, mut relay) = waiting(&[Verdict::Blocked, Verdict::Blocked]).await;
    assert_eq!(queue(&outbox), "1:blocked:due 2:blocked");
    let row = relay.outgoing().await.pop().unwrap();
    let report = relay.settle(&row, &[("audit", Verdict::Blocked)]).await;
    assert!(report.woke);
    assert_eq!(
        queue(&outbox),
        "1:blocked:due 2:blocked",
        "the one behind it does not hold it"
    );
}

#[tokio::test]
async fn a_hold_of_a_waiting_row_holds_those_behind_it_too() {
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked, Verdict::Blocked]).await;
    settle_next(&mut relay, Verdict::Delivered).await;
    let rows = relay.outgoing().await;
    outbox.run("UPDATE outbox_waiting SET state = 'retry', due_at = 9e15 WHERE CAST(payload AS TEXT) = '2'");
    relay.settle(&rows[1], &[("audit", Verdict::Blocked)]).await;
    assert_eq!(queue(&outbox), "2:retry:due 3:blocked");
}

#[tokio::test]
async fn deliveries_of_one_key_do_not_hold_each_other() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2"])).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[("audit", retry(60))]).await;
    relay
        .settle(&rows[1], &[("audit", Verdict::Blocked), ("shop", Verdict::Blocked)])
        .await;
    let due = relay.outgoing().await;
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].row_ref.sink.as_deref(), Some("shop"));
}

#[tokio::test]
async fn a_row_that_was_not_routed_yet_holds_and_lets_go_every_delivery() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&keyed("k", &["1", "2"])).await;
    let mut relay = outbox.relay().await;
    let rows = relay.outgoing().await;
    relay.settle(&rows[0], &[("", dead(true))]).await;
    relay
        .settle(&rows[1], &[("audit", Verdict::Blocked), ("shop", Verdict::Blocked)])
        .await;
    assert_eq!(queue(&outbox), "2:blocked 2:blocked");
    outbox
        .store
        .retry_dead(&Filter::default(), None, usize::MAX, &mut Command::by("ops"))
        .await
        .unwrap();
    assert_eq!(queue(&outbox), "1:retry:due 2:blocked 2:blocked");
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    assert_eq!(outbox.store.release_orphans(relay.owner, &lanes).await.unwrap(), 0);

    let head = relay.outgoing().await.pop().unwrap();
    assert_eq!(head.row_ref.sink, None);
    let report = relay.settle(&head, &[("shop", retry(60))]).await;
    assert!(report.woke);
    assert_eq!(freed(&report), [("k", "")]);
    assert_eq!(queue(&outbox), "1:retry:due 2:blocked:due 2:blocked");
    assert_eq!(relay.outgoing().await[0].row_ref.sink.as_deref(), Some("audit"));
}

#[tokio::test]
async fn a_stranger_releases_no_orphans() {
    let (outbox, relay) = waiting(&[retry(60), Verdict::Blocked]).await;
    outbox.run("DELETE FROM outbox_waiting WHERE state = 'retry'");
    let lanes: Vec<_> = relay.grants.iter().map(|grant| grant.lane).collect();
    let stranger = sendoff::store::OwnerId::random();
    assert_eq!(outbox.store.release_orphans(stranger, &lanes).await.unwrap(), 0);
    assert_eq!(outbox.store.release_orphans(relay.owner, &[]).await.unwrap(), 0);
    assert_eq!(outbox.store.release_orphans(relay.owner, &lanes).await.unwrap(), 1);
    assert_eq!(queue(&outbox), "2:blocked:due");
}

#[tokio::test]
async fn keys_of_many_rows_are_settled_together() {
    // A delivery and a failure of one key in one batch: 1 goes, 3 fails, and 2 may go on.
    let (outbox, mut relay) = waiting(&[retry(0), Verdict::Blocked, Verdict::Blocked, Verdict::Blocked]).await;
    assert_eq!(queue(&outbox), "1:retry:due 2:blocked 3:blocked 4:blocked");
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[]).await;
    assert_eq!(queue(&outbox), "2:blocked:due 3:blocked:due 4:blocked:due");
    let rows = relay.outgoing().await;
    let settlements = [
        relay.settlement(&rows[1], &[("audit", retry(60))]),
        relay.settlement(&rows[0], &[]),
    ];
    relay.settle_all(&settlements).await;
    assert_eq!(queue(&outbox), "3:retry:due 4:blocked");
}

#[tokio::test]
async fn a_hold_without_a_key_has_nothing_to_wait_for() {
    let outbox = TestOutbox::new().await;
    outbox.emit(&[text("a")]).await;
    let mut relay = outbox.relay().await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", Verdict::Blocked)]).await;
    let row = relay.outgoing().await.pop().unwrap();
    relay.settle(&row, &[("audit", Verdict::Blocked)]).await;
    assert_eq!(relay.payloads().await, ["a"]);
}
