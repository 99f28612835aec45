//! Lists, page by page.

use super::*;

pub(crate) fn request(filter: Filter, limit: usize) -> ListRequest {
    ListRequest {
        filter: filter.into(),
        limit,
        ..ListRequest::default()
    }
}

/// All pages of a list: the ids of each.
async fn pages(operator: &Operator, mut request: ListRequest) -> Vec<Vec<u128>> {
    let mut pages = Vec::new();
    loop {
        let page = operator.list(&request).await.unwrap();
        pages.push(page.items.iter().map(|item| item.id.unwrap().as_u128()).collect());
        request.after = page.next;
        if request.after.is_none() {
            return pages;
        }
        assert!(pages.len() < 100, "pages without end: {pages:?}");
    }
}

pub(crate) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_list_is_newest_first_or_oldest_first_whatever_the_table() {
    let status = [Status::Pending, Status::Dead, Status::Delivered];
    let (operator, _) = operator((1..=7).map(|id| stored(id, "t", "", status[id as usize % 3])));
    let mut request = request(Filter::default(), 3);
    assert_eq!(
        pages(&operator, request.clone()).await,
        [vec![7, 6, 5], vec![4, 3, 2], vec![1]]
    );
    request.order.oldest_first = true;
    assert_eq!(pages(&operator, request).await, [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
}

#[tokio::test]
async fn a_page_keeps_the_deliveries_of_a_message_together() {
    let rows = [(1, ""), (2, "a"), (2, "b"), (2, "c"), (3, "a"), (3, "b")];
    let (operator, _) = operator(rows.map(|(id, sink)| stored(id, "t", sink, Status::Dead)));
    let ask = |limit| request(Filter::default(), limit);
    assert_eq!(pages(&operator, ask(4)).await, [vec![3, 3], vec![2, 2, 2, 1]]);
    assert_eq!(
        pages(&operator, ask(1)).await,
        [vec![3, 3], vec![2, 2, 2], vec![1]],
        "all of a message are on one page, even if they are more than asked for"
    );
}

#[tokio::test]
async fn pages_are_stable_while_rows_come_and_go() {
    let (operator, store) = operator((1..=6).map(|id| stored(id, "t", "", Status::Pending)));
    let mut request = request(Filter::default(), 2);
    let first = operator.list(&request).await.unwrap();
    request.after = first.next;
    {
        let mut rows = store.rows.lock().unwrap();
        rows.retain(|row| row.seq != 4);
        rows.push(stored(7, "t", "", Status::Pending));
        for row in rows.iter_mut().filter(|row| row.seq == 3) {
            row.status = Status::Dead;
        }
    }
    assert_eq!(pages(&operator, request).await, [vec![3, 2], vec![1]]);
}

#[tokio::test]
async fn a_list_by_end_has_what_ended() {
    let ended = |id: u128, status, seconds| Stored {
        ended_at: Some(at(seconds)),
        ..stored(id, "t", "", status)
    };
    let rows = [
        ended(1, Status::Dead, 50),
        ended(2, Status::Delivered, 40),
        ended(3, Status::Dead, 30),
        ended(4, Status::Dead, 30),
        stored(5, "t", "", Status::Pending),
    ];
    let (operator, _) = operator(rows);
    let mut request = request(Filter::default(), 3);
    request.order = ListOrder {
        by: ListBy::Ended,
        oldest_first: false,
    };
    assert_eq!(pages(&operator, request.clone()).await, [vec![1, 2, 4], vec![3]]);
    request.order.oldest_first = true;
    assert_eq!(pages(&operator, request.clone()).await, [vec![3, 4, 2], vec![1]]);
    request.filter = Filter {
        died_from: Some(at(31)),
        ..Filter::default()
    }
    .into();
    assert_eq!(pages(&operator, request.clone()).await, [vec![1]]);
    request.filter = Filter {
        status: Some(Status::Retry),
        ..Filter::default()
    }
    .into();
    assert_eq!(operator.list(&request).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_list_with_a_time_of_creation_starts_near_it() {
    let hour = 3600;
    let rows = (1..=3000_u64).map(|id| Stored {
        created_at: at(id * hour),
        ..stored(u128::from(id), "t", "", Status::Pending)
    });
    let (operator, _) = operator(rows);
    for oldest_first in [false, true] {
        let mut request = request(
            Filter {
                created_from: Some(at(1000 * hour)),
                created_until: Some(at(1003 * hour)),
                ..Filter::default()
            },
            10,
        );
        request.order.oldest_first = oldest_first;
        let page = operator.list(&request).await.unwrap();
        let mut ids: Vec<u128> = page.items.iter().map(|item| item.id.unwrap().as_u128()).collect();
        ids.sort_unstable();
        assert_eq!((ids, page.next), (vec![1000, 1001, 1002], None));
        assert!(page.scanned.unwrap() < 2500, "{:?}", page.scanned);
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let (operator, _) = operator((1..=3).map(|id| stored(id, "t", "", Status::Pending)));
    let page = operator.list(&request(Filter::default(), 1)).await.unwrap();
    let topic = Filter {
        topic: Some("t".into()),
        ..Filter::default()
    };
    let mut other = request(topic, 1);
    other.after = page.next.clone();
    let error = operator.list(&other).await.unwrap_err();
    assert!(error.to_string().contains("another filter"), "{error}");
    let mut turned = request(Filter::default(), 1);
    turned.order.oldest_first = true;
    turned.after = page.next;
    let error = operator.list(&turned).await.unwrap_err();
    assert!(error.to_string().contains("another order"), "{error}");
    turned.after = Some("7".to_owned());
    assert_eq!(operator.list(&turned).await.unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn ids_are_found_without_looking_at_others() {
    let (operator, _) = operator((1..=9).map(|id| stored(id, "t", "", Status::Pending)));
    let filter = Filter {
        ids: [3, 8, 99, 5].map(Uuid::from_u128).to_vec(),
        ..Filter::default()
    };
    let page = operator.list(&request(filter.clone(), 10)).await.unwrap();
    assert_eq!(page.scanned, Some(3));
    assert_eq!(pages(&operator, request(filter, 2)).await, [vec![8, 5], vec![3]]);
}

#[tokio::test]
async fn payloads_and_limits_of_a_list_are_checked() {
    let (operator, _) = operator([stored(1, "t", "", Status::Pending)]);
    let mut request = request(Filter::default(), 1);
    assert_eq!(operator.list(&request).await.unwrap().items[0].payload, None);
    request.payload = true;
    assert!(operator.list(&request).await.unwrap().items[0].payload.is_some());
    for limit in [0, MOST_ROWS + 1] {
        request.limit = limit;
        assert_eq!(operator.list(&request).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let count = operator.count_some(&Filter::default()).await.unwrap();
    assert_eq!((count.count, count.at_least), (1, false));
}

#[tokio::test]
async fn dead_letters_are_listed_alone() {
    let rows = [
        stored(1, "a", "", Status::Dead),
        stored(2, "a", "", Status::Pending),
        stored(3, "b", "", Status::Dead),
    ];
    let (operator, _) = operator(rows);
    let of = |status, topic: Option<&str>| Filter {
        status,
        topic: topic.map(Into::into),
        ..Filter::default()
    };
    for (filter, count) in [
        (of(None, None), 2),
        (of(Some(Status::Dead), None), 2),
        (of(None, Some("b")), 1),
    ] {
        let page = operator.dead_list(&request(filter, 10)).await.unwrap();
        assert_eq!(page.items.len(), count);
    }
    let error = operator
        .dead_list(&request(of(Some(Status::Retry), None), 10))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
