//! The encoding of the body.

use sendoff_celery::{Compression, Serializer};
use serde_json::{Value, json};

use super::{Producer, Scenario, Then, first, scenario};

const DROPPED: &str = "the package drops it when it enqueues";

fn as_yaml() -> Value {
    first(json!({"result": [["TAG", "yes", "1e3", "~"], {}], "content_type": "application/x-yaml"}))
}

fn as_json() -> Then {
    Then::Runs(vec![first(json!({
        "result": [["TAG", "yes", "1e3", "~"], {}], "content_type": "application/json",
    }))])
}

fn compressed(with: Value) -> Value {
    first(json!({"result": "TAGzzzzzzzzzzzzzzzzzzzzzzzz", "compression": with}))
}

fn not_compressed() -> Then {
    Then::Runs(vec![compressed(Value::Null)])
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("serializer_yaml")
            .django("echo.apply_async((tag, 'yes', '1e3', '~'), serializer='yaml')")
            .rust(|it| {
                vec![
                    it.task("shop.echo", (&it.tag, "yes", "1e3", "~"))
                        .serializer(Serializer::Yaml),
                ]
            })
            .sql(
                "shop.echo",
                r#"{"args": ["TAG", "yes", "1e3", "~"], "options": {"serializer": "yaml"}}"#,
            )
            .runs([as_yaml()])
            .except(Producer::Django, as_json(), DROPPED),
        scenario("task_serializer_yaml")
            .django("yaml.delay(tag, 'yes', '1e3', '~')")
            .rust(|it| {
                vec![
                    it.task("shop.yaml", (&it.tag, "yes", "1e3", "~"))
                        .serializer(Serializer::Yaml),
                ]
            })
            .sql(
                "shop.yaml",
                r#"{"args": ["TAG", "yes", "1e3", "~"], "options": {"serializer": "yaml"}}"#,
            )
            .runs([as_yaml()])
            .except(Producer::Django, as_json(), DROPPED),
        scenario("serializer_pickle")
            .django("echo.apply_async((tag, 'yes', '1e3', '~'), serializer='pickle')")
            .sql("shop.echo", r#"{"args": ["TAG"], "options": {"serializer": "pickle"}}"#)
            .except(Producer::Django, as_json(), DROPPED)
            .except(Producer::Rust, Then::Unsaid, "only Python can write it")
            .except(Producer::Sql, Then::Dead("json and yaml"), "only Python can write it")
            .except(Producer::Row, Then::Dead("json and yaml"), "only Python can write it"),
        scenario("compression_gzip")
            .django("join.apply_async((tag, 'z' * 24), compression='gzip')")
            .rust(|it| vec![it.join(&"z".repeat(24)).compression(Compression::Gzip)])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "zzzzzzzzzzzzzzzzzzzzzzzz"], "options": {"compression": "gzip"}}"#,
            )
            .runs([compressed(json!("application/x-gzip"))])
            .except(Producer::Django, not_compressed(), DROPPED),
        scenario("compression_bzip2")
            .django("join.apply_async((tag, 'z' * 24), compression='bzip2')")
            .rust(|it| vec![it.join(&"z".repeat(24)).compression(Compression::Bzip2)])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "zzzzzzzzzzzzzzzzzzzzzzzz"], "options": {"compression": "bzip2"}}"#,
            )
            .runs([compressed(json!("application/x-bz2"))])
            .except(Producer::Django, not_compressed(), DROPPED),
        scenario("compression_zstd")
            .django("join.apply_async((tag, 'z' * 24), compression='zstd')")
            .rust(|it| vec![it.join(&"z".repeat(24)).compression(Compression::Zstd)])
            .sql(
                "shop.join",
                r#"{"args": ["TAG", "zzzzzzzzzzzzzzzzzzzzzzzz"], "options": {"compression": "zstd"}}"#,
            )
            .runs([compressed(json!("application/zstd"))])
            .except(Producer::Django, not_compressed(), DROPPED),
    ]
}
