//! A private Redis Cluster.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::port::Port;
use super::{Options, Redis};

const SLOTS: usize = 16_384;

/// Nodes that share all slots, without replicas.
pub struct RedisCluster {
    /// The nodes, by their slots: those of the first come first.
    pub nodes: Vec<Redis>,
    /// What the nodes talk to each other by.
    _bus: Vec<Port>,
}

impl RedisCluster {
    /// Starts so many nodes, and waits until they take writes.
    pub async fn start(count: usize) -> Self {
        Self::start_with(count, Options::default()).await
    }

    /// Starts so many nodes that are all set up so. With TLS, the nodes send clients to each other by TLS.
    pub async fn start_with(count: usize, options: Options) -> Self {
        let (mut nodes, mut bus) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let port = Port::reserve();
            let mut options = options.clone();
            let tls = if options.tls.is_some() { "yes" } else { "no" };
            options.lines.extend([
                "cluster-enabled yes".to_owned(),
                format!("cluster-port {}", port.number),
                format!("tls-cluster {tls}"),
            ]);
            nodes.push(Redis::start_with(options).await);
            bus.push(port);
        }
        for (at, node) in nodes.iter().enumerate() {
            let (first, next) = (at * SLOTS / count, (at + 1) * SLOTS / count);
            node.say(&format!("CLUSTER ADDSLOTSRANGE {first} {}", next - 1)).await;
            let (port, bus_port) = (node.node_port(), bus[at].number);
            if at > 0 {
                nodes[0].say(&format!("CLUSTER MEET 127.0.0.1 {port} {bus_port}")).await;
            }
        }
        let cluster = Self { nodes, _bus: bus };
        cluster.wait_until_ready().await;
        cluster
    }

    /// Waits until every node knows of all slots and takes writes.
    ///
    /// # Panics
    /// When they do not after a minute.
    pub async fn wait_until_ready(&self) {
        let began = Instant::now();
        for node in &self.nodes {
            loop {
                let told = node.say("CLUSTER INFO").await;
                let nodes = format!("cluster_known_nodes:{}\r", self.nodes.len());
                let slots = format!("cluster_slots_ok:{SLOTS}\r");
                if ["cluster_state:ok\r", &nodes, &slots]
                    .iter()
                    .all(|line| told.contains(line))
                {
                    break;
                }
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "no cluster came of it: {told}"
                );
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
