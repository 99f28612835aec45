use super::*;
use crate::config::QueueType;

fn config(toml: &str) -> CeleryConfig {
    toml::from_str(toml).unwrap()
}

fn routed(toml: &str, task: &str, wanted: &Wanted) -> Destination {
    let router = Router::new(&config(toml)).unwrap();
    router.route(task, wanted, None).unwrap().destination
}

/// Exchange and routing key, and the queue that is declared.
fn address_of(destination: &Destination) -> (&str, &str, Option<&str>) {
    (
        &destination.exchange,
        &destination.routing_key,
        destination.queue.as_ref().map(|queue| queue.name.as_str()),
    )
}

fn wanted(queue: Option<&str>, exchange: Option<&str>, routing_key: Option<&str>) -> Wanted {
    Wanted {
        queue: queue.map(Into::into),
        exchange: exchange.map(Into::into),
        routing_key: routing_key.map(Into::into),
        exchange_type: None,
    }
}

const ROUTES: &str = r#"
[[routes]]
task = "demo.*"
queue = "globbed"
[[routes]]
task = "demo.add"
queue = "exact"
[[routes]]
task = "demo.add*"
queue = "late"
[[routes]]
task = "nothing.*"
[[routes]]
task = "ex.*"
exchange = "ex"
routing_key = "ex.key"
"#;

#[test]
fn a_whole_name_goes_before_patterns_and_patterns_go_in_their_order() {
    let to = |task| routed(ROUTES, task, &Wanted::default()).routing_key;
    assert_eq!(to("demo.add"), "exact");
    assert_eq!(to("demo.addition"), "globbed");
    assert_eq!(to("other"), "celery");
    assert_eq!(to("nothing.set"), "celery");
}

#[test]
fn what_the_task_says_goes_before_its_route() {
    let destination = routed(ROUTES, "demo.add", &wanted(Some("own"), None, None));
    assert_eq!(address_of(&destination), ("", "own", Some("own")));
}

#[test]
fn a_route_with_an_exchange_declares_no_queue() {
    let destination = routed(ROUTES, "ex.one", &Wanted::default());
    assert_eq!(address_of(&destination), ("ex", "ex.key", None));
}

#[test]
fn an_explicit_exchange_needs_a_routing_key() {
    let both = routed("", "t", &wanted(None, Some("myx"), Some("my.key")));
    assert_eq!(address_of(&both), ("myx", "my.key", Some("celery")));
    // As in Celery, one of the two alone has no effect on a direct queue.
    let only_key = routed("", "t", &wanted(None, None, Some("only.rk")));
    assert_eq!(address_of(&only_key), ("", "celery", Some("celery")));
    let only_exchange = routed("", "t", &wanted(None, Some("myx"), None));
    assert_eq!(address_of(&only_exchange), ("", "celery", Some("celery")));
    let lost = config("[[routes]]\ntask = \"a*\"\nexchange = \"x\"");
    let error = Router::new(&lost)
        .unwrap()
        .route("a", &Wanted::default(), None)
        .unwrap_err();
    assert!(error.to_string().contains("no routing key"), "{error}");
}

#[test]
fn a_topic_queue_is_reached_through_its_exchange() {
    let toml = r#"
    default_exchange_type = "topic"
    default_routing_key = "task.default"
    [[queues]]
    name = "feeds"
    routing_key = "feed.#"
    [[queues]]
    name = "celery"
    "#;
    let default = routed(toml, "t", &Wanted::default());
    assert_eq!(address_of(&default), ("celery", "task.default", Some("celery")));
    let own_key = routed(toml, "t", &wanted(Some("feeds"), None, Some("feed.rss")));
    assert_eq!(address_of(&own_key), ("celery", "feed.rss", Some("feeds")));
    // A queue that is not in the settings has its own direct exchange.
    let missing = routed(toml, "t", &wanted(Some("new"), None, None));
    assert_eq!(address_of(&missing), ("", "new", Some("new")));
}

#[test]
fn a_missing_queue_is_refused_where_it_may_not_be_created() {
    let router = Router::new(&config("create_missing_queues = false")).unwrap();
    assert!(router.route("t", &Wanted::default(), None).is_ok());
    let error = router.route("t", &wanted(Some("typo"), None, None), None).unwrap_err();
    assert!(error.to_string().contains("\"typo\""), "{error}");
}

#[test]
fn the_same_name_twice_is_refused() {
    let twice = "[[routes]]\ntask = \"a\"\nqueue = \"x\"\n[[routes]]\ntask = \"a\"\nqueue = \"y\"";
    assert!(Router::new(&config(twice)).is_err());
    assert!(Router::new(&config("[[queues]]\nname = \"a\"\n[[queues]]\nname = \"a\"")).is_err());
}

#[test]
fn arguments_of_queues_follow_the_settings() {
    let toml = "queue_max_priority = 10\ncreate_missing_queue_type = \"quorum\"";
    let default = routed(toml, "t", &Wanted::default()).queue.unwrap();
    assert_eq!(
        default.arguments.get("x-max-priority"),
        Some(&crate::config::Argument::Int(10))
    );
    assert!(!default.is_quorum());
    assert!(
        routed(toml, "t", &wanted(Some("new"), None, None))
            .queue
            .unwrap()
            .is_quorum()
    );
}

#[test]
fn a_task_that_is_due_later_waits_in_rabbitmq_only_behind_a_quorum_queue_that_is_not_direct() {
    let quorum = |exchange_type, queue_type| {
        let config = CeleryConfig {
            default_exchange_type: exchange_type,
            default_queue_type: queue_type,
            ..CeleryConfig::default()
        };
        Router::new(&config).unwrap()
    };
    let delayed = |router: &Router, delay| {
        let route = router.route("t", &Wanted::default(), delay).unwrap();
        route.destination.delayed.map(|delayed| delayed.routing_key)
    };
    let topic = quorum(ExchangeType::Topic, QueueType::Quorum);
    assert!(delayed(&topic, Some(5.7)).unwrap().ends_with(".1.0.1.celery"));
    for none in [None, Some(0.9), Some(-3.0), Some(f64::NAN)] {
        assert_eq!(delayed(&topic, none), None);
    }
    assert!(delayed(&topic, Some(1e300)).unwrap().starts_with("1.1.1."));
    assert_eq!(
        delayed(&quorum(ExchangeType::Direct, QueueType::Quorum), Some(5.0)),
        None
    );
    assert_eq!(
        delayed(&quorum(ExchangeType::Topic, QueueType::Classic), Some(5.0)),
        None
    );
}

#[test]
fn a_quorum_queue_that_is_made_on_demand_delays_in_rabbitmq_too() {
    let toml = "create_missing_queue_type = \"quorum\"\ncreate_missing_queue_exchange_type = \"topic\"";
    let router = Router::new(&config(toml)).unwrap();
    let delayed = |queue| {
        let route = router.route("t", &wanted(queue, None, None), Some(5.0)).unwrap();
        route.destination.delayed.map(|delayed| delayed.routing_key)
    };
    assert!(delayed(Some("new")).unwrap().ends_with(".1.0.1.new"));
    assert_eq!(delayed(None), None, "the default queue is a classic one");
}
