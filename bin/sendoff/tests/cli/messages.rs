//! `emit`, `ls`, `show` and `dead`, on every database.

use serde_json::json;

use crate::on_every_database;
use crate::sandbox::{Sandbox, lines};
use crate::sink::{hook, server};

on_every_database! {
    an_emitted_message_is_listed_and_shown_as_it_was_given
    payloads_come_from_flags_files_and_standard_input
    headers_that_a_list_leaves_out_are_marked
    a_second_emit_with_the_idempotency_key_reports_the_first
    a_delayed_message_waits
    a_planned_message_waits_for_its_time
    an_expired_message_dies_and_one_that_has_time_does_not
    messages_are_found_by_their_aggregate
    a_message_has_a_limit_of_its_own
    a_load_is_emitted_and_counted
    lists_are_filtered_and_paged
    what_does_not_exist_ends_with_5
    dead_letters_are_listed_shown_counted_and_brought_back
    bad_filters_end_with_2
    a_payload_is_never_in_the_log
}

fn an_emitted_message_is_listed_and_shown_as_it_was_given(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let payload = r#"{"b":1.10,"a":"x"}"#;
    let id = sandbox.emit(&[
        "order.placed",
        "--payload",
        payload,
        "--key",
        "customer-7",
        "--header",
        "tenant=acme",
        "--priority",
        "-3",
    ]);
    let list = sandbox.json(&["ls"]);
    assert_eq!((&list["items"][0]["id"], &list["next"]), (&json!(id), &json!(null)));
    assert_eq!(
        (&list["scanned"], &list["items"][0]["payload"]),
        (&json!(1), &json!(null))
    );
    assert_eq!(sandbox.json(&["ls", "--payload"])["items"][0]["payload"], payload);
    assert_eq!(list["items"][0]["status"], "pending");

    let shown = sandbox.json(&["show", &id]);
    assert_eq!(shown["payload"], payload);
    assert_eq!(shown["topic"], "order.placed");
    assert_eq!(shown["key"], "customer-7");
    assert_eq!(shown["headers"], json!({"tenant": "acme"}));
    assert_eq!(shown["content_type"], "application/json");
    assert_eq!(shown["priority"], -3);
    assert_eq!(shown["deliveries"].as_array().unwrap().len(), 1);

    let told = sandbox.ok(["show", &id]).out;
    for line in [
        "order.placed",
        "customer-7",
        "tenant: acme",
        "{\n  \"b\": 1.10,\n  \"a\": \"x\"\n}",
    ] {
        assert!(told.contains(line), "{line} in {told}");
    }
    let listed = sandbox.ok(["ls"]).out;
    let row = listed.lines().nth(1).unwrap();
    assert!(
        row.starts_with(&format!("{id}\tpending\torder.placed\tcustomer-7\t")),
        "{listed}"
    );
}

fn headers_that_a_list_leaves_out_are_marked(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let long = format!("h={}", "v".repeat(5000));
    let id = sandbox.emit(&["long", "--payload", "1", "--header", &long]);
    sandbox.emit(&["bare", "--payload", "1"]);
    let list = sandbox.json(&["ls", "--oldest"]);
    let marked = |at: usize| (&list["items"][at]["headers"], &list["items"][at]["headers_cut"]);
    assert_eq!(marked(0), (&json!({}), &json!(true)));
    assert_eq!(marked(1), (&json!({}), &json!(false)));
    let shown = sandbox.json(&["show", &id]);
    assert_eq!(shown["headers"], json!({"h": "v".repeat(5000)}));
    assert_eq!(shown["headers_cut"], false);
    assert!(sandbox.ok(["show", &id]).out.contains(&"v".repeat(5000)));
}

fn payloads_come_from_flags_files_and_standard_input(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let bytes = [0_u8, 255, 10, 13, 65];
    std::fs::write(sandbox.path("payload"), bytes).unwrap();
    let from_file = sandbox.emit(&["t", "--payload-file", "payload"]);
    let shown = sandbox.json(&["show", &from_file]);
    assert_eq!(shown["payload_base64"], "AP8KDUE=");
    assert_eq!(shown["content_type"], "application/octet-stream");
    assert!(sandbox.ok(["show", &from_file]).out.contains("00 ff 0a 0d 41"));

    for args in [&["emit", "t"][..], &["emit", "t", "--payload-file", "-"]] {
        let ran = sandbox.run_with_input(args, b"hello\n");
        assert_eq!(ran.code, 0, "{ran:?}");
        let shown = sandbox.json(&["show", ran.out.trim()]);
        assert_eq!(shown["payload"], "hello\n");
        assert_eq!(shown["content_type"], "text/plain; charset=utf-8");
    }

    let typed = sandbox.emit(&["t", "--payload", "<a/>", "--content-type", "application/xml"]);
    assert_eq!(sandbox.json(&["show", &typed])["content_type"], "application/xml");
    sandbox
        .run(["emit", "t", "--payload-file", "gone"])
        .fails_with_reason(2, &["gone"]);
}

fn a_second_emit_with_the_idempotency_key_reports_the_first(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let emit = ["emit", "t", "--payload", "{}", "--idempotency-key", "req-1"];
    let first = sandbox.json(&emit);
    assert_eq!(first["duplicate"], false);
    let second = sandbox.json(&emit);
    assert_eq!(second, json!({"id": first["id"], "duplicate": true}));
    let ran = sandbox.ok(emit);
    assert_eq!(ran.out.trim(), first["id"].as_str().unwrap());
    assert!(ran.err.contains("duplicate"), "{ran:?}");
    assert_eq!(sandbox.json(&["ls"])["items"].as_array().unwrap().len(), 1);
}

fn a_delayed_message_waits(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    let id = sandbox.emit(&["t", "--payload", "{}", "--delay", "1h"]);
    let shown = sandbox.json(&["show", &id]);
    assert_eq!(shown["deliveries"][0]["detail"], "scheduled");
    assert!(shown["deliveries"][0]["due_at"].is_string(), "{shown}");
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!((&report["processed"], &report["remaining"]), (&json!(0), &json!(1)));
    assert!(lines(&out).is_empty());
}

fn a_planned_message_waits_for_its_time(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("");
    let planned = sandbox.emit(&["t", "--payload", "{}", "--at", "2999-12-31T12:00:00+01:00"]);
    sandbox.emit(&["t", "--payload", "{}", "--at", "2020-01-01T00:00:00Z"]);
    let sink = &sandbox.json(&["show", &planned])["deliveries"][0];
    assert_eq!(sink["detail"], "scheduled");
    assert!(
        sink["due_at"]
            .as_str()
            .is_some_and(|due| due.starts_with("2999-12-31T11:00:00")),
        "{sink}"
    );
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!((&report["delivered"], &report["remaining"]), (&json!(1), &json!(1)));
    for args in [
        &["emit", "t", "--payload", "{}", "--at", "tomorrow"][..],
        &[
            "emit",
            "t",
            "--payload",
            "{}",
            "--at",
            "2999-12-31T12:00:00Z",
            "--delay",
            "1h",
        ],
    ] {
        assert_eq!(sandbox.run(args).code, 2);
    }
}

fn an_expired_message_dies_and_one_that_has_time_does_not(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    let late = sandbox.emit(&["t", "--payload", "{}", "--expires", "1ms"]);
    let past = sandbox.emit(&["t", "--payload", "{}", "--expires", "2020-01-01T00:00:00Z"]);
    let in_time = sandbox.emit(&["t", "--payload", "{}", "--expires", "1h"]);
    let far = sandbox.emit(&["t", "--payload", "{}", "--expires", "2999-12-31T12:00:00Z"]);
    let expires = sandbox.json(&["show", &far])["expires_at"].clone();
    assert!(
        expires.as_str().is_some_and(|at| at.starts_with("2999-12-31T12:00:00")),
        "{expires}"
    );
    sandbox.ok(["relay", "--once"]);
    for id in [&late, &past] {
        let shown = sandbox.json(&["dead", "show", id]);
        assert_eq!(shown["deliveries"][0]["detail"], "expired");
    }
    let mut arrived: Vec<String> = lines(&out)
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    arrived.sort();
    let mut wanted = vec![in_time, far];
    wanted.sort();
    assert_eq!(arrived, wanted);
}

fn messages_are_found_by_their_aggregate(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let emit = |kind: &str, id: &str, more: &[&str]| {
        let aggregate = ["t", "--payload", "{}", "--aggregate-type", kind, "--aggregate-id", id];
        sandbox.emit(&[&aggregate[..], more].concat())
    };
    let order = emit("order", "7", &[]);
    let invoice = emit("invoice", "7", &["--key", "customer-1"]);
    sandbox.emit(&["t", "--payload", "{}"]);
    let shown = sandbox.json(&["show", &order]);
    assert_eq!(
        (&shown["aggregate_type"], &shown["aggregate_id"], &shown["key"]),
        (&json!("order"), &json!("7"), &json!("order:7"))
    );
    assert_eq!(sandbox.json(&["show", &invoice])["key"], "customer-1");
    let listed = |filters: &[&str]| {
        let flags = filters.iter().flat_map(|filter| ["--filter", filter]);
        let list = sandbox.json(&["ls", "--oldest"].into_iter().chain(flags).collect::<Vec<_>>());
        let messages = list["items"].as_array().unwrap().clone();
        let ids = messages
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    assert_eq!(listed(&["aggregate_type=order"]), [&*order]);
    assert_eq!(listed(&["aggregate_id=7"]), [&*order, &*invoice]);
    assert_eq!(listed(&["aggregate_type=invoice", "aggregate_id=7"]), [&*invoice]);
    assert!(listed(&["aggregate_id=8"]).is_empty());
    let half = sandbox.run(["emit", "t", "--payload", "{}", "--aggregate-type", "order"]);
    assert_eq!(half.code, 2, "{half:?}");
}

fn a_message_has_a_limit_of_its_own(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let (failing, _requests) = server("500 Internal Server Error");
    sandbox.configure(&hook(failing));
    let other = sandbox.emit(&["t", "--payload", "{}"]);
    let id = sandbox.emit(&["t", "--payload", "{}", "--max-attempts", "1"]);
    assert_eq!(sandbox.json(&["show", &id])["max_attempts"], 1);
    sandbox.ok(["relay", "--once"]);
    assert_eq!(sandbox.json(&["show", &id])["deliveries"][0]["detail"], "exhausted");
    assert_eq!(sandbox.json(&["show", &other])["status"], "retry");
    assert_eq!(
        sandbox
            .run(["emit", "t", "--payload", "{}", "--max-attempts", "0"])
            .code,
        2
    );
}

fn a_load_is_emitted_and_counted(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    assert_eq!(
        sandbox.emit(&["t", "--payload", "{}", "--count", "1203"]),
        "1203 emitted"
    );
    let first = sandbox.json(&["ls", "--limit", "1000"]);
    assert_eq!(
        (first["items"].as_array().unwrap().len(), first["next"].is_string()),
        (1000, true)
    );
    let next = first["next"].as_str().unwrap();
    let rest = sandbox.json(&["ls", "--limit", "1000", "--after", next]);
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["next"]),
        (203, &json!(null))
    );
    let ids = |page: &serde_json::Value| {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].clone())
            .collect::<Vec<_>>()
    };
    assert!(
        ids(&rest).iter().all(|id| !ids(&first).contains(id)),
        "no message is on two pages"
    );
    assert_eq!(
        sandbox.json(&["ls", "--count"]),
        json!({"count": 1203, "approximate": false, "at_least": false})
    );
    assert_eq!(sandbox.ok(["ls", "--count"]).out, "1,203\n");
    sandbox
        .run(["ls", "--topic", "t", "--after", next])
        .fails_with_reason(2, &["another filter"]);
    sandbox
        .run(["ls", "--after", "first"])
        .fails_with_reason(2, &["invalid cursor"]);
}

fn lists_are_filtered_and_paged(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let order = sandbox.emit(&["order.placed", "--payload", "{\"n\":1}", "--key", "a"]);
    let invoice = sandbox.emit(&["invoice.due", "--payload", "{\"n\":2}", "--key", "b"]);
    let listed = |args: &[&str], wanted: &[&String]| {
        let list = sandbox.json(&[&["ls"], args].concat());
        let messages = list["items"].as_array().unwrap().iter();
        let ids: Vec<&str> = messages.map(|message| message["id"].as_str().unwrap()).collect();
        assert_eq!(ids, wanted, "{args:?}");
    };
    listed(&[], &[&invoice, &order]);
    listed(&["--newest"], &[&invoice, &order]);
    listed(&["--oldest"], &[&order, &invoice]);
    listed(&["--topic", "order.*"], &[&order]);
    listed(&["--key", "b"], &[&invoice]);
    listed(&["--key", "*"], &[&invoice, &order]);
    listed(&["--status", "pending", "--limit", "1"], &[&invoice]);
    listed(&["--search", "oice"], &[&invoice]);
    listed(&["--search", &order[..24]], &[&order]);
    listed(&["--filter", "payload.n=2"], &[&invoice]);
    listed(&["--reason", "expired"], &[]);
    listed(&["--filter", "payload=\"n\":2"], &[&invoice]);
    listed(&["--filter", &format!("id={order}")], &[&order]);
    listed(
        &["--filter", "created_from=2000-01-01", "--oldest"],
        &[&order, &invoice],
    );
    listed(&["--status", "dead"], &[]);
    let none = sandbox.ok(["ls", "--key", "nobody"]);
    assert!(
        none.out.starts_with("id\tstatus\t") && none.err.contains("no messages match"),
        "{none:?}"
    );
    let more = sandbox.ok(["ls", "--limit", "1"]);
    assert!(more.err.contains("there are more: continue with --after "), "{more:?}");
    let next = more.err.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(
        sandbox
            .ok(["ls", "--limit", "1", "--after", &next])
            .out
            .contains(&order)
    );
}

fn what_does_not_exist_ends_with_5(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let id = "00000000-0000-7000-8000-000000000000";
    sandbox.run(["show", id]).fails_with_reason(5, &[id]);
    sandbox.run(["dead", "show", id]).fails_with_reason(5, &[id]);
    sandbox.run(["dead", "retry", id]).fails_with_reason(5, &["dead ls"]);
    let pending = sandbox.emit(&["t", "--payload", "{}"]);
    sandbox
        .run(["dead", "show", &pending])
        .fails_with_reason(5, &["pending"]);
}

fn dead_letters_are_listed_shown_counted_and_brought_back(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    let out = sandbox.configure_file_sink("");
    // Only orders have a route, so that everything else becomes a dead letter.
    let narrow = sandbox
        .read("sendoff.toml")
        .replace("match = \"*\"", "match = \"order.*\"");
    sandbox.write("sendoff.toml", &narrow);
    let dead: Vec<String> = ["a.b", "a.c", "d"]
        .map(|topic| sandbox.emit(&[topic, "--payload", "{}"]))
        .into();
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!((&report["dead"], &report["backlog"]["dead"]), (&json!(3), &json!(3)));

    let list = sandbox.json(&["dead", "ls"]);
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    assert_eq!(list["items"][0]["deliveries"][0]["detail"], "unroutable");
    assert!(sandbox.ok(["dead", "ls", "--topic", "a.*"]).out.contains("unroutable"));
    assert_eq!(sandbox.json(&["dead", "show", &dead[0]])["status"], "dead");

    sandbox.run(["dead", "retry"]).fails_with_reason(2, &["--all"]);
    let counted = sandbox.json(&["dead", "retry", "--filter", "topic=a.*", "--dry-run"]);
    assert_eq!(counted, json!({"would_retry": 2}));
    assert_eq!(sandbox.json(&["dead", "ls"])["items"].as_array().unwrap().len(), 3);

    sandbox.configure_file_sink("");
    assert_eq!(
        sandbox.json(&["dead", "retry", &dead[0], "--yes"]),
        json!({"retried": 1})
    );
    assert_eq!(sandbox.ok(["dead", "retry", "--topic", "a.*"]).out, "1 retried\n");
    assert_eq!(sandbox.json(&["dead", "retry", "--all"]), json!({"retried": 1}));
    let report = sandbox.json(&["relay", "--once"]);
    assert_eq!((&report["delivered"], &report["remaining"]), (&json!(3), &json!(0)));
    let mut arrived: Vec<String> = lines(&out)
        .iter()
        .map(|line| line["id"].as_str().unwrap().to_owned())
        .collect();
    let mut wanted = dead;
    arrived.sort();
    wanted.sort();
    assert_eq!(arrived, wanted);
}

fn bad_filters_end_with_2(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    for (args, word) in [
        (&["ls", "--status", "lost"][..], "blocked, deferred, delivered or dead"),
        (&["ls", "--filter", "colour=red"], "colour"),
        (&["ls", "--filter", "topic"], "name=value"),
        (&["ls", "--filter", "created_from=soon"], "7d"),
        (&["ls", "--newer-than", "1h", "--older-than", "2h"], "not before"),
        (&["ls", "--limit", "0"], "1000"),
        (&["ls", "--limit", "1001"], "1000"),
        (&["ls", "--topic", ""], "empty"),
        (&["dead", "ls", "--filter", "status=retry"], "status"),
    ] {
        sandbox.run(args).fails(2, &[word]);
    }
}

fn a_payload_is_never_in_the_log(sandbox: Sandbox) {
    let sandbox = sandbox.migrated();
    sandbox.configure_file_sink("");
    let id = sandbox.emit(&["t", "--payload", "{}"]);
    for args in [
        &["emit", "t", "--payload", "hunter2", "--header", "token=hunter2"][..],
        &["ls"],
        &["show", &id],
        &["relay", "--once"],
    ] {
        for format in ["human", "json"] {
            let flags = ["-vvv", "--log-level", "trace", "--log-format", format];
            let ran = sandbox.ok(args.iter().copied().chain(flags));
            assert!(!ran.err.contains("hunter2"), "{ran:?}");
        }
    }
}
