//! Arguments that JSON has no type for, or cannot represent exactly.

use std::time::{Duration, UNIX_EPOCH};

use sendoff::Uuid;
use sendoff_celery::Typed;
use serde_json::{Value, json};

use super::{Producer, Scenario, Then, first, scenario};

const NO_TYPE: &str = "Django's JSONField has no such type";

const NOT_JSON: &str = "the databases check that it is JSON";
const NO_CHARACTER: &str = "jsonb has no such character";
const OTHER_DIGITS: &str = "jsonb writes them in other digits";

/// The task is called with its tag and a value that Python prints like this.
fn shows(values: &str) -> Value {
    first(json!({"args": format!("['TAG', {values}]")}))
}

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("type_datetime")
            .django("show.delay(tag, later)")
            .rust(|it| {
                let at = UNIX_EPOCH + Duration::from_micros(1_935_904_089_123_456);
                vec![it.task("shop.show", (&it.tag, Typed::datetime(at)))]
            })
            .sql(
                "shop.show",
                r#"{"args": ["TAG", {"__type__": "datetime", "__value__": "2031-05-07T07:08:09.123456+00:00"}]}"#,
            )
            .runs([shows("datetime.datetime(2031, 5, 7, 7, 8, 9, 123456, tzinfo=datetime.timezone.utc)")])
            .except(Producer::Django, Then::Refused("TypeError"), NO_TYPE),
        scenario("date_and_time")
            .django("show.delay(tag, later.date(), later.time())")
            .rust(|it| vec![it.task("shop.show", (&it.tag, Typed::date("2031-05-06"), Typed::time("07:08:09")))])
            .sql(
                "shop.show",
                r#"{"args": ["TAG", {"__type__": "date", "__value__": "2031-05-06"},
                    {"__type__": "time", "__value__": "07:08:09"}]}"#,
            )
            .runs([shows("datetime.date(2031, 5, 6), datetime.time(7, 8, 9)")])
            .except(Producer::Django, Then::Refused("TypeError"), NO_TYPE),
        scenario("type_uuid_decimal")
            .django("show.delay(tag, uuid.UUID(int=5), decimal.Decimal('1.10'))")
            .rust(|it| {
                let values = (&it.tag, Typed::uuid(Uuid::from_u128(5)), Typed::decimal("1.10"));
                vec![it.task("shop.show", values)]
            })
            .sql(
                "shop.show",
                r#"{"args": ["TAG", {"__type__": "uuid", "__value__": {"hex": "00000000000000000000000000000005"}},
                    {"__type__": "decimal", "__value__": "1.10"}]}"#,
            )
            .runs([shows("UUID('00000000-0000-0000-0000-000000000005'), Decimal('1.10')")])
            .except(Producer::Django, Then::Refused("TypeError"), NO_TYPE),
        scenario("type_bytes")
            .django("show.delay(tag, b'\\x00\\xff', b'abc')")
            .rust(|it| vec![it.task("shop.show", (&it.tag, Typed::bytes([0, 255]), Typed::bytes("abc")))])
            .sql(
                "shop.show",
                r#"{"args": ["TAG", {"__type__": "base64", "__value__": "AP8="}, {"__type__": "bytes", "__value__": "abc"}]}"#,
            )
            .runs([shows(r"b'\x00\xff', b'abc'")])
            .except(Producer::Django, Then::Refused("TypeError"), NO_TYPE),
        scenario("type_set")
            .django("show.delay(tag, {1, 2})")
            .except(Producer::Django, Then::Refused("TypeError"), "Celery itself refuses a set")
            .except(Producer::Rust, Then::Unsaid, "Celery itself refuses a set")
            .except(Producer::Sql, Then::Unsaid, "Celery itself refuses a set")
            .except(Producer::Row, Then::Unsaid, "Celery itself refuses a set"),
        scenario("type_nan")
            .django("show.delay(tag, float('nan'))")
            .sql("shop.show", r#"{"args": ["TAG", NaN]}"#)
            .runs([shows("nan")])
            .except(Producer::Django, Then::Refused("Error"), NOT_JSON)
            .except(Producer::Row, Then::Unsaid, NOT_JSON)
            .except(Producer::Rust, Then::Unsaid, "the builder refuses it: serde would make null of it"),
        scenario("type_int_keys")
            .django("show.delay(tag, {1: 'a', None: 'b'})")
            .rust(|it| vec![it.task("shop.show", (&it.tag, json!({"1": "a", "null": "b"})))])
            .sql("shop.show", r#"{"args": ["TAG", {"1": "a", "null": "b"}]}"#)
            .runs([shows("{'1': 'a', 'null': 'b'}")]),
        scenario("type_nul")
            .django("show.delay(tag, 'a\\x00b')")
            .rust(|it| vec![it.task("shop.show", (&it.tag, "a\0b"))])
            .sql("shop.show", r#"{"args": ["TAG", "a\u0000b"]}"#)
            .runs([shows(r"'a\x00b'")])
            .except_on("postgres", Producer::Django, Then::Refused("DataError"), NO_CHARACTER)
            .except_on("postgres", Producer::Row, Then::Unsaid, NO_CHARACTER),
        scenario("type_lone_surrogate")
            .django("show.delay(tag, '\\ud800')")
            .sql("shop.show", r#"{"args": ["TAG", "\ud800"]}"#)
            .runs([shows(r"'\ud800'")])
            .except_on("postgres", Producer::Django, Then::Refused("DataError"), NO_CHARACTER)
            .except_on("postgres", Producer::Row, Then::Unsaid, NO_CHARACTER)
            .except_on("mysql", Producer::Django, Then::Refused("Error"), NOT_JSON)
            .except_on("mysql", Producer::Row, Then::Unsaid, NOT_JSON)
            .except(Producer::Rust, Then::Unsaid, "Rust's text has no such character"),
        scenario("digits")
            .django("show.delay(tag, 2**100, 0.1)")
            .rust(|it| vec![it.task("shop.show", (&it.tag, 1_u128 << 100, 0.1))])
            .sql("shop.show", r#"{"args": ["TAG", 1267650600228229401496703205376, 0.1]}"#)
            .runs([shows("1267650600228229401496703205376, 0.1")]),
        scenario("floats")
            .django("show.delay(tag, 1e300, -0.0)")
            .rust(|it| vec![it.task("shop.show", (&it.tag, 1e300, -0.0))])
            .sql("shop.show", r#"{"args": ["TAG", 1e300, -0.0]}"#)
            .runs([shows("1e+300, -0.0")])
            .except_on("postgres", Producer::Django, rewritten(), OTHER_DIGITS)
            .except_on("postgres", Producer::Row, rewritten(), OTHER_DIGITS),
    ]
}

fn rewritten() -> Then {
    Then::Runs(vec![shows(&format!("1{}, 0.0", "0".repeat(300)))])
}
