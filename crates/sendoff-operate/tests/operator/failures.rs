//! Failures by group.

use super::*;

fn failed(id: u128, sink: &str, status: Status, error: &str) -> Stored {
    Stored {
        last_error: Some(error.to_owned()),
        detail: Some(if status == Status::Dead { "permanent" } else { "retry" }.to_owned()),
        ended_at: (status == Status::Dead).then(|| at(u64::try_from(id).unwrap())),
        ..stored(id, "t", sink, status)
    }
}

fn failures() -> Vec<Stored> {
    vec![
        failed(1, "shop", Status::Dead, "no queue 'a' at 10.0.0.1:5672"),
        failed(2, "shop", Status::Dead, "no queue 'b' at 10.0.0.2:5672"),
        failed(3, "shop", Status::Dead, "refused"),
        failed(4, "audit", Status::Dead, "no queue 'a' at 10.0.0.1:5672"),
        failed(5, "shop", Status::Retry, "timed out after 30s"),
        stored(6, "t", "", Status::Pending),
    ]
}

#[tokio::test]
async fn failures_are_grouped_by_sink_reason_and_error() {
    let (operator, _) = operator(failures());
    let found = operator.failures(&Filter::default()).await.unwrap();
    let groups: Vec<_> = found
        .items
        .iter()
        .map(|group| {
            (
                group.sink.as_deref().unwrap(),
                group.reason.as_str(),
                group.error.as_str(),
                group.count,
            )
        })
        .collect();
    assert_eq!(groups[0], ("shop", "permanent", "no queue <text> at <address>", 2));
    assert_eq!(groups.len(), 4, "{groups:?}");
    assert!(groups.contains(&("shop", "retry", "timed out after <n>s", 1)));
    let first = &found.items[0];
    assert_eq!(
        (first.first_seen.as_str(), first.last_seen.as_str()),
        ("1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:02.000000Z")
    );
    assert_eq!((first.example, first.at_least), (Some(Uuid::from_u128(2)), false));
    let of_audit = Filter {
        sink: Some("audit".to_owned()),
        ..Filter::default()
    };
    assert_eq!(operator.failures(&of_audit).await.unwrap().items.len(), 1);
    let pending = Filter {
        status: Some(Status::Pending),
        ..Filter::default()
    };
    assert_eq!(
        operator.failures(&pending).await.unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

#[tokio::test]
async fn a_command_on_a_group_changes_the_group_and_nothing_else() {
    let (operator, store) = operator(failures());
    let found = operator.failures(&Filter::default()).await.unwrap();
    let group = found.items[0].group.clone();
    let retry = found
        .items
        .iter()
        .find(|group| group.reason == "retry")
        .unwrap()
        .group
        .clone();
    let selected = operator.selected(Filter::default(), Some(&group), false).await.unwrap();
    assert_eq!(selected.dead_count().await.unwrap(), 2);
    assert_eq!(selected.dead_retry(&mut |_| {}).await.unwrap(), 2);
    let dead: Vec<i64> = {
        let rows = store.rows.lock().unwrap();
        rows.iter()
            .filter(|row| row.status == Status::Dead)
            .map(|row| row.seq)
            .collect()
    };
    assert_eq!(dead, [3, 4]);
    {
        let retries = store.retries.lock().unwrap();
        let (filter, _) = &retries[0];
        assert_eq!(filter.ids, [1, 2].map(Uuid::from_u128));
        assert_eq!(
            (filter.group.as_deref(), filter.sink.as_deref()),
            (Some(group.as_str()), Some("shop"))
        );
    }
    let gone = operator.selected(Filter::default(), Some(&group), false).await;
    assert_eq!(gone.err().unwrap().kind(), ErrorKind::NotFound);
    let waiting = operator.selected(Filter::default(), Some(&retry), false).await.unwrap();
    let error = waiting.dead_count().await.unwrap_err();
    assert!(error.to_string().contains("sendoff retry --group"), "{error}");
}
