//! `sendoff celery-stats`: counts of the tables of django-celery-outbox.

use sendoff_store_django_celery::Stats;
use serde_json::json;

use super::celery_flags::Seconds;
use super::celery_relay::open;
use crate::exit::{Done, Exit};
use crate::output::{Field, Tone};
use crate::session::Session;

/// Count eligible, waiting and dead tasks of django-celery-outbox, with the age of the oldest eligible task
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also show this many of the tasks with the most failed attempts
    #[arg(long, value_name = "TASKS", default_value_t = 0)]
    top: u32,
    /// Count rows as eligible that a relay claimed this long ago and did not settle; use the relay's value
    #[arg(long, default_value_t = usual_stale_timeout(), value_name = "SECONDS")]
    stale_timeout_seconds: Seconds,
    /// Time zone of Django's sessions on MySQL or MariaDB [default: the server's]
    #[arg(long, value_name = "ZONE")]
    mysql_time_zone: Option<String>,
}

fn usual_stale_timeout() -> Seconds {
    sendoff_store_django_celery::Settings::default().stale_timeout.into()
}

pub(crate) async fn run(args: Args, session: &Session) -> Done {
    let outbox = open(&session.config()?, session, args.mysql_time_zone)?;
    let stats = outbox.stats(args.stale_timeout_seconds.0).await?;
    let failing = match args.top {
        0 => Vec::new(),
        most => outbox.failing(most).await?,
    };
    if session.output.json {
        session.output.json(&as_json(stats, &failing))?;
    } else {
        session.output.table(&["what", "count", ""], rows(stats, &failing))?;
    }
    Ok(Exit::Ok)
}

fn as_json(stats: Stats, failing: &[(String, u64)]) -> serde_json::Value {
    let task = |(name, attempts): &(String, u64)| json!({"task": name, "failed_attempts": attempts});
    json!({
        "eligible": stats.eligible,
        "waiting": stats.waiting,
        "dead": stats.dead,
        "oldest_eligible_seconds": stats.oldest.map(|oldest| oldest.as_secs_f64()),
        "failing": failing.iter().map(task).collect::<Vec<_>>(),
    })
}

fn rows(stats: Stats, failing: &[(String, u64)]) -> Vec<Vec<Field>> {
    let row = |what: &str, count: u64, tone: Tone, note: String| {
        let tone = if count > 0 { tone } else { Tone::Plain };
        vec![what.into(), Field::toned(count.to_string(), tone), note.into()]
    };
    let oldest = stats
        .oldest
        .map_or_else(String::new, |oldest| format!("oldest: {:.1} s", oldest.as_secs_f64()));
    let mut rows = vec![
        row("eligible", stats.eligible, Tone::Plain, oldest),
        row(
            "waiting",
            stats.waiting,
            Tone::Plain,
            "claimed, or due later".to_owned(),
        ),
        row("dead", stats.dead, Tone::Bad, "given up".to_owned()),
    ];
    let failed = "failed attempts of waiting rows";
    rows.extend(
        failing
            .iter()
            .map(|(name, attempts)| row(name, *attempts, Tone::Warning, failed.to_owned())),
    );
    rows
}
