//! Countdown, eta and expiry.

use std::time::Duration;

use serde_json::json;

use super::{Caller, Producer, Scenario, Then, first, scenario, system};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("countdown")
            .on_quorum()
            .delayed(Caller::DELAY)
            .django("join.apply_async((tag, 'a'), countdown=2)")
            .rust(|it| vec![it.join("a").countdown(Caller::DELAY)])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"countdown": 2}}"#)
            .runs([first(json!({"result": "TAGa", "eta": "ANY"}))]),
        scenario("eta_utc")
            .on_quorum()
            .delayed(Caller::DELAY)
            .django("join.apply_async((tag, 'a'), eta=eta)")
            .rust(|it| vec![it.join("a").eta(system(it.eta()))])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"eta": "ETA"}}"#)
            .runs([first(json!({"result": "TAGa", "eta": "ETA"}))]),
        scenario("eta_naive")
            .delayed(Caller::DELAY)
            .django("join.apply_async((tag, 'a'), eta=eta.replace(tzinfo=None))")
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"eta": "NAIVE"}}"#)
            .runs([first(json!({"result": "TAGa", "eta": "ANY"}))])
            .except(Producer::Rust, Then::Unsaid, "a SystemTime is the same in every zone"),
        scenario("held_in_the_outbox")
            .delayed(Caller::DELAY)
            .rust(|it| {
                vec![
                    it.join("a")
                        .countdown(Caller::DELAY)
                        .hold_until_due(Duration::from_millis(500)),
                ]
            })
            .runs([first(json!({"result": "TAGa", "eta": "ANY"}))])
            .except(Producer::Django, Then::Unsaid, "the package sends immediately")
            .except(
                Producer::Sql,
                Then::Unsaid,
                "the column available_at is no option of a task",
            )
            .except(Producer::Row, Then::Unsaid, "the package sends immediately"),
        scenario("expires_int")
            .early()
            .django("join.apply_async((tag, 'a'), expires=300)")
            .rust(|it| vec![it.join("a").expires_in(Duration::from_secs(300))])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"expires": 300}}"#)
            .runs([first(json!({"result": "TAGa", "expires": "ANY"}))]),
        scenario("expired_int")
            .early()
            .django("join.apply_async((tag, 'a'), expires=1)")
            .rust(|it| vec![it.join("a").expires_in(Duration::from_secs(1))])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"expires": 1}}"#)
            .expires(),
        scenario("expires_float")
            .early()
            .django("join.apply_async((tag, 'a'), expires=1.5)")
            .rust(|it| vec![it.join("a").expires_in(Duration::from_millis(1500))])
            .sql("shop.join", r#"{"args": ["TAG", "a"], "options": {"expires": 1.5}}"#)
            .expires(),
        scenario("expires_datetime")
            .early()
            .django("join.apply_async((tag, 'a'), expires=later)")
            .rust(|it| vec![it.join("a").expires_at(system(it.later()))])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "a"], "options": {"expires": "LATER"}}"#,
            )
            .runs([first(json!({"result": "TAGa", "expires": "LATER"}))]),
    ]
}
