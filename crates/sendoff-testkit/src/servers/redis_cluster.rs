//! A private Redis Cluster.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::port::Port;
use super::{Options, Redis};

const SLOTS: usize = 16_384;

/// Nodes that share all slots.
pub struct RedisCluster {
    /// The nodes, by their slots: those of the first come first.
    pub nodes: Vec<Redis>,
    /// Those that take over when their node is gone.
    pub replicas: Vec<Redis>,
    options: Options,
    /// What the nodes talk to each other by.
    bus: Vec<Port>,
}

impl RedisCluster {
    /// Starts so many nodes, and waits until they take writes.
    pub async fn start(count: usize) -> Self {
        Self::start_with(count, Options::default()).await
    }

    /// Starts so many nodes that are all set up so. With TLS, the nodes send clients to each other by TLS.
    pub async fn start_with(count: usize, options: Options) -> Self {
        let mut cluster = Self {
            nodes: Vec::new(),
            replicas: Vec::new(),
            options,
            bus: Vec::new(),
        };
        for at in 0..count {
            let node = cluster.start_node().await;
            let (first, next) = (at * SLOTS / count, (at + 1) * SLOTS / count);
            node.say(&format!("CLUSTER ADDSLOTSRANGE {first} {}", next - 1)).await;
            cluster.introduce(&node).await;
            cluster.nodes.push(node);
        }
        cluster.wait_until_ready().await;
        cluster
    }

    async fn start_node(&mut self) -> Redis {
        let port = Port::reserve();
        let mut options = self.options.clone();
        let tls = if options.tls.is_some() { "yes" } else { "no" };
        options.lines.extend([
            "cluster-enabled yes".to_owned(),
            format!("cluster-port {}", port.number),
            format!("tls-cluster {tls}"),
        ]);
        self.bus.push(port);
        Redis::start_with(options).await
    }

    /// Makes the node that was started last known to the first, which tells the others.
    async fn introduce(&self, node: &Redis) {
        if let (Some(first), Some(bus)) = (self.nodes.first(), self.bus.last()) {
            let (port, bus) = (node.node_port(), bus.number);
            first.say(&format!("CLUSTER MEET 127.0.0.1 {port} {bus}")).await;
        }
    }

    /// Starts a replica of this node, and waits until it has what the node has.
    pub async fn add_replica(&mut self, of: usize) {
        let replica = self.start_node().await;
        self.introduce(&replica).await;
        let told = self.nodes[of].say("CLUSTER MYID").await;
        let id = told.lines().nth(1).expect("the length, and the id");
        wait_until(&replica, "CLUSTER NODES", &[id]).await;
        replica.say(&format!("CLUSTER REPLICATE {id}")).await;
        wait_until(&replica, "INFO replication", &["master_link_status:up\r"]).await;
        // The others have to know it, too: they vote for it.
        for node in &self.nodes {
            wait_until(node, "CLUSTER NODES", &[&format!(" slave {id} ")]).await;
        }
        self.replicas.push(replica);
    }

    /// Waits until every node knows of all slots and takes writes.
    ///
    /// # Panics
    /// When they do not after a minute.
    pub async fn wait_until_ready(&self) {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len() + self.replicas.len());
        let slots = format!("cluster_slots_ok:{SLOTS}\r");
        for node in &self.nodes {
            wait_until(node, "CLUSTER INFO", &["cluster_state:ok\r", &known, &slots]).await;
        }
    }
}

/// Asks a node until its answer has all these words.
async fn wait_until(node: &Redis, question: &str, words: &[&str]) {
    let began = Instant::now();
    loop {
        let told = node.say(question).await;
        if words.iter().all(|word| told.contains(word)) {
            break;
        }
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{question} never had {words:?}: {told}"
        );
        sleep(Duration::from_millis(20)).await;
    }
}
