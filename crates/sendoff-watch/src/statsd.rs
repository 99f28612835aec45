//! The same metrics for DogStatsD, by UDP or a Unix socket.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::net::UdpSocket;
#[cfg(unix)]
use tokio::net::UnixDatagram;
use tokio::time::{sleep, timeout};

use crate::figures::{Figures, shortened};
use crate::health::Health;
use crate::subject::Subject;

/// The size of a datagram: it fits into a packet of the usual size.
const DATAGRAM: usize = 1432;
/// How often metrics are sent.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait until a socket has room for a datagram.
const PATIENCE: Duration = Duration::from_millis(200);

/// Where to send metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatsdTarget {
    /// Sends to a host by UDP.
    Udp {
        /// The host, by name or address.
        host: String,
        /// The UDP port.
        port: u16,
    },
    /// Sends to a Unix datagram socket.
    Unix(PathBuf),
}

/// How to send metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatsdConfig {
    /// Where to send metrics.
    pub target: StatsdTarget,
    /// The prefix of all metric names.
    pub prefix: String,
    /// The name of the tag with the topic.
    pub topic_tag: String,
    /// Tags of every metric, such as `env:prod`.
    pub tags: Vec<String>,
    /// Whether counters have the names of django-celery-outbox, where a message has one delivery.
    pub drop_in: bool,
}

/// The values sent so far, to compute what is new.
#[derive(Default)]
pub(crate) struct Sent {
    by_topic: FxHashMap<String, [u64; 3]>,
}

/// The counters, in the order of the numbers in [`Sent`]. Their names have their unit.
const COUNTERS: [&str; 3] = ["deliveries.published", "attempts.failed", "deliveries.exceeded"];
/// The same as django-celery-outbox calls them.
const DROP_IN_COUNTERS: [&str; 3] = ["messages.published", "messages.failed", "messages.exceeded"];

impl StatsdConfig {
    /// One line per metric: what is new since the last time, and the gauges.
    pub(crate) fn lines(&self, figures: &mut Figures, health: &Health, sent: &mut Sent) -> Vec<String> {
        let mut now: FxHashMap<&str, [u64; 3]> = FxHashMap::default();
        for (topic, _, series) in figures.all() {
            let counts = now.entry(topic).or_default();
            let new = [series.outcomes[0], series.failed(), series.dead.iter().sum()];
            for (count, new) in counts.iter_mut().zip(new) {
                *count += new;
            }
        }
        let counters = if self.drop_in { DROP_IN_COUNTERS } else { COUNTERS };
        let mut topics: Vec<_> = now.into_iter().collect();
        topics.sort_unstable();
        let mut lines = Vec::new();
        for (topic, counts) in topics {
            let before = sent.by_topic.entry(topic.to_owned()).or_default();
            for ((name, count), before) in counters.iter().zip(counts).zip(before) {
                let new = count - std::mem::replace(before, count);
                if new > 0 {
                    lines.push(self.line(name, new, "c", Some(tag(&self.topic_tag, topic))));
                }
            }
        }
        for took in figures.durations.as_mut().map(std::mem::take).unwrap_or_default() {
            let ms = (took.as_micros() as f64) / 1000.0;
            lines.push(self.line("batch.duration_ms", ms, "ms", None));
        }
        if let Some(store_health) = &health.store_health {
            lines.push(self.line("queue.depth", store_health.ready + store_health.waiting, "g", None));
            lines.push(self.line("dead_letter.count", store_health.dead, "g", None));
        }
        lines
    }

    fn line(&self, name: &str, value: impl std::fmt::Display, kind: &str, tag: Option<String>) -> String {
        let mut line = if self.prefix.is_empty() {
            format!("{name}:{value}|{kind}")
        } else {
            format!("{}.{name}:{value}|{kind}", self.prefix)
        };
        for (number, tag) in tag.iter().chain(&self.tags).enumerate() {
            let _ = write!(line, "{}{tag}", if number == 0 { "|#" } else { "," });
        }
        line
    }
}

/// A tag whose value is a name. Producers choose topics freely, so the value must not end the tag, the line or the datagram.
fn tag(of: &str, name: &str) -> String {
    let letter = |letter| match letter {
        ',' | '|' | '#' => '_',
        letter if char::is_control(letter) => '_',
        letter => letter,
    };
    let name: String = shortened(name).chars().map(letter).collect();
    format!("{of}:{name}")
}

/// Packs lines into datagrams.
fn packed(lines: Vec<String>) -> Vec<String> {
    let mut datagrams: Vec<String> = Vec::new();
    for line in lines {
        match datagrams.last_mut() {
            Some(last) if last.len() + 1 + line.len() <= DATAGRAM => {
                last.push('\n');
                last.push_str(&line);
            }
            _ => datagrams.push(line),
        }
    }
    datagrams
}

/// An open socket.
enum Socket {
    Udp(UdpSocket),
    #[cfg(unix)]
    Unix(UnixDatagram),
}

impl Socket {
    async fn open(target: &StatsdTarget) -> std::io::Result<Self> {
        match target {
            StatsdTarget::Udp { host, port } => {
                let mut last = std::io::Error::other("the host has no address");
                for address in tokio::net::lookup_host((host.as_str(), *port)).await? {
                    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                    let socket = UdpSocket::bind(any).await?;
                    match socket.connect(address).await {
                        Ok(()) => return Ok(Self::Udp(socket)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            #[cfg(unix)]
            StatsdTarget::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                Ok(Self::Unix(socket))
            }
            #[cfg(not(unix))]
            StatsdTarget::Unix(_) => Err(std::io::Error::other("this system has no Unix sockets")),
        }
    }

    /// Datagrams that the receiver has no room for are lost, as usual with StatsD.
    async fn send(&self, datagram: &[u8]) -> std::io::Result<usize> {
        let sent = async {
            match self {
                Self::Udp(socket) => socket.send(datagram).await,
                #[cfg(unix)]
                Self::Unix(socket) => socket.send(datagram).await,
            }
        };
        match timeout(PATIENCE, sent).await {
            Ok(sent) => sent,
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Sends new values periodically, and once more at the end.
pub(crate) struct Sender {
    subjects: Vec<(Arc<Subject>, StatsdConfig, Sent)>,
    target: StatsdTarget,
    socket: Option<Socket>,
    complained: bool,
}

impl Sender {
    pub(crate) fn new(subjects: &[Arc<Subject>], config: StatsdConfig) -> Self {
        let with_config = |subject: &Arc<Subject>| {
            let mut config = config.clone();
            if !subject.name().is_empty() {
                config.tags.push(tag("source", subject.name()));
            }
            (subject.clone(), config, Sent::default())
        };
        Self {
            subjects: subjects.iter().map(with_config).collect(),
            target: config.target.clone(),
            socket: None,
            complained: false,
        }
    }

    pub(crate) async fn keep_sending(&mut self) {
        loop {
            sleep(INTERVAL).await;
            self.send().await;
        }
    }

    pub(crate) async fn send(&mut self) {
        let lines = self.subjects.iter_mut().flat_map(|(subject, config, sent)| {
            let (mut figures, health) = (subject.figures(), subject.health());
            config.lines(&mut figures, &health, sent)
        });
        let lines = lines.collect();
        for datagram in packed(lines) {
            let sent = match self.opened().await {
                Ok(socket) => socket.send(datagram.as_bytes()).await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(_) => self.complained = false,
                // No process listens there yet, or any more; or there is no room.
                Err(error) => {
                    self.socket = None;
                    if !std::mem::replace(&mut self.complained, true) {
                        tracing::warn!(event = "statsd_failed", %error, "cannot send metrics to StatsD");
                    }
                }
            }
        }
    }

    async fn opened(&mut self) -> std::io::Result<&Socket> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => Socket::open(&self.target).await?,
        };
        Ok(self.socket.insert(socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::LONGEST_NAME;

    #[test]
    fn datagrams_are_filled_and_not_overfilled() {
        let lines: Vec<String> = (0..100)
            .map(|n| format!("sendoff.deliveries.published:{n}|c"))
            .collect();
        let datagrams = packed(lines.clone());
        assert!(datagrams.len() < 4 && datagrams.iter().all(|datagram| datagram.len() <= DATAGRAM));
        assert_eq!(datagrams.join("\n"), lines.join("\n"));
    }

    #[test]
    fn counters_are_sent_once_and_then_only_what_is_new() {
        let config = StatsdConfig {
            target: StatsdTarget::Unix("/nowhere".into()),
            prefix: "sendoff".to_owned(),
            topic_tag: "topic".to_owned(),
            tags: Vec::new(),
            drop_in: false,
        };
        let (mut figures, health, mut sent) = (Figures::new(10, true), Health::default(), Sent::default());
        let mut lines = |figures: &mut Figures| config.lines(figures, &health, &mut sent);
        for _ in 0..3 {
            figures.dead("a", "out", sendoff::store::DeadReason::Expired);
        }
        assert_eq!(lines(&mut figures), ["sendoff.deliveries.exceeded:3|c|#topic:a"]);
        assert!(lines(&mut figures).is_empty());
        figures.dead("a", "other", sendoff::store::DeadReason::Expired);
        assert_eq!(lines(&mut figures), ["sendoff.deliveries.exceeded:1|c|#topic:a"]);
    }

    #[test]
    fn names_become_tags_that_cannot_break_a_line() {
        assert_eq!(
            tag("topic", "a.b:c,d|e#f\ng\0h\x1b[31mi\u{85}"),
            "topic:a.b:c_d_e_f_g_h_[31mi_"
        );
        let long = tag("topic", &format!("{}\n", "é|".repeat(500_000)));
        assert!(
            long.len() <= "topic:".len() + LONGEST_NAME && long.ends_with('…'),
            "{long}"
        );
    }

    #[test]
    fn whatever_producers_and_configurations_call_things_a_datagram_has_one_line_a_figure() {
        let config = StatsdConfig {
            target: StatsdTarget::Unix("/nowhere".into()),
            prefix: "sendoff".to_owned(),
            topic_tag: "topic".to_owned(),
            tags: vec!["env:prod".to_owned()],
            drop_in: false,
        };
        let name = format!("x:1|g\n#,\r\0{}", "|é\n".repeat(400_000));
        let subject = Arc::new(Subject::new(&name, 10, false, Duration::from_secs(60)));
        for sink in ["out", &name] {
            subject.figures().dead(&name, sink, sendoff::store::DeadReason::Expired);
        }
        let mut sender = Sender::new(std::slice::from_ref(&subject), config);
        let (_, config, sent) = &mut sender.subjects[0];
        let lines = config.lines(&mut subject.figures(), &subject.health(), sent);
        let datagrams = packed(lines);
        let [datagram] = &datagrams[..] else {
            panic!("{datagrams:?}")
        };
        assert!(!datagram.contains(char::is_control), "{datagram:?}");
        let parts: Vec<&str> = datagram.split('|').collect();
        assert_eq!(parts[..2], ["sendoff.deliveries.exceeded:2", "c"]);
        let tags: Vec<&str> = parts[2].strip_prefix('#').unwrap().split(',').collect();
        assert_eq!((parts.len(), tags.len(), tags[1]), (3, 3, "env:prod"), "{datagram}");
        for (tag, of) in [(tags[0], "topic:"), (tags[2], "source:")] {
            let name = tag.strip_prefix(of).unwrap();
            assert!(name.starts_with("x:1_g____") && name.len() <= LONGEST_NAME, "{tag}");
            assert!(!name.contains('#'), "{tag}");
        }
    }
}
