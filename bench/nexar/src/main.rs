//! Times ranks of nexar as bench/coll/hawser_coll.cc times ranks of Hawser: one process for each rank, the same
//! repetitions, the same inputs, the same rows (bench/coll/plan.h), with COLL_SPAN. bench/nexar_bench.py runs it.
//!
//! usage: nexar-bench WHO RANK SIZE SEED_ADDRESS SCALE OPS SIZES
//!
//! OPS with commas between: open, barrier, pingpong, stream, all_reduce, broadcast. The environment configures nexar:
//! NEXAR_ENABLE_TCP_BULK_SIDECAR=false leaves QUIC alone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nexar::{ClusterConfig, CpuAdapter, DataType, NexarClient, ReduceOp, Result};

const STREAM_BYTES: usize = 256 << 20;
const STREAM_UNDER_WAY: usize = 4;
const STREAM_ROUNDS: usize = 3;
const TAG_THERE: u32 = 1;
const TAG_BACK: u32 = 2;
const TAG_STREAM: u32 = 7;

/// As `repetitions_of` of plan.h.
fn repetitions_of(bytes: usize, scale: f64) -> usize {
    let wanted = if bytes <= 16384 { 2000.0 } else { 2000.0 * 16384.0 / bytes as f64 };
    ((wanted * scale) as usize).max(10)
}

fn float_at(i: usize, rank: usize, repetition: usize) -> f32 {
    ((i + rank * 7 + repetition * 3) % 64) as f32
}

/// Seconds by a clock that all processes of this host share, few enough for nanoseconds to count.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("the clock is right");
    (since.as_secs() % 100_000) as f64 + 1e-9 * f64::from(since.subsec_nanos())
}

/// What the element should be after the operation.
fn right_at(op: &str, i: usize, size: usize, repetition: usize) -> f32 {
    match op {
        "all_reduce" => (0..size).map(|rank| float_at(i, rank, repetition)).sum(),
        _ => float_at(i, 0, repetition),
    }
}

struct Bench {
    client: NexarClient,
    who: String,
    scale: f64,
    opened: f64,
}

impl Bench {
    fn rank(&self) -> usize {
        self.client.rank() as usize
    }

    fn size(&self) -> usize {
        self.client.world_size() as usize
    }

    fn tell(&self, op: &str, bytes: usize, seconds: &mut [f64], wrong: f64) {
        seconds.sort_by(f64::total_cmp);
        let at = |share: f64| 1e6 * seconds[(seconds.len() as f64 * share) as usize];
        println!(
            "{{\"who\": \"{}\", \"op\": \"{op}\", \"bytes\": {bytes}, \"n\": {}, \"p50\": {:.3}, \"p99\": {:.3}, \"wrong\": {wrong}}}",
            self.who, seconds.len(), at(0.5), at(0.99)
        );
    }

    async fn reduce(&self, values: &mut [f64], op: ReduceOp) -> Result<()> {
        // SAFETY: the vector lives, and has so many elements, until the call returns.
        unsafe { self.client.all_reduce(values.as_mut_ptr() as u64, values.len(), DataType::F64, op).await }
    }

    async fn run(&self, op: &str, bytes: usize) -> Result<()> {
        let count = bytes / size_of::<f32>();
        let mut data = vec![0f32; count.max(1)];
        let repetitions = repetitions_of(bytes, self.scale);
        let warm = 1 + repetitions / 10;
        let (mut begins, mut ends) = (Vec::with_capacity(repetitions), Vec::with_capacity(repetitions));
        let mut wrong = [0f64];
        for repetition in 0..warm + repetitions {
            for (i, each) in data.iter_mut().enumerate() {
                *each = float_at(i, self.rank(), repetition);
            }
            self.client.barrier().await?;
            let begin = now();
            self.once(op, &mut data[..count]).await?;
            if repetition >= warm {
                begins.push(begin);
                ends.push(now());
            }
            let has_result = op != "barrier" && (op != "pingpong" || self.rank() < 2);
            if repetition % 16 == 0 && has_result {
                let are_wrong = |(i, got): (usize, &f32)| *got != right_at(op, i, self.size(), repetition);
                wrong[0] += data[..count].iter().enumerate().filter(|each| are_wrong(*each)).count() as f64;
            }
        }
        self.reduce(&mut wrong, ReduceOp::Sum).await?;
        self.reduce(&mut begins, ReduceOp::Min).await?;
        self.reduce(&mut ends, ReduceOp::Max).await?;
        if self.rank() == 0 {
            let mut seconds = ends.iter().zip(&begins).map(|(end, begin)| end - begin).collect::<Vec<_>>();
            self.tell(op, bytes, &mut seconds, wrong[0]);
        }
        Ok(())
    }

    async fn once(&self, op: &str, data: &mut [f32]) -> Result<()> {
        let (at, bytes, count) = (data.as_mut_ptr() as u64, size_of_val(data), data.len());
        // SAFETY: `data` is borrowed until each call has returned.
        unsafe {
            match (op, self.rank()) {
                ("barrier", _) => self.client.barrier().await,
                ("all_reduce", _) => self.client.all_reduce(at, count, DataType::F32, ReduceOp::Sum).await,
                ("broadcast", _) => self.client.broadcast(at, count, DataType::F32, 0).await,
                ("pingpong", 0) => {
                    self.client.send(at, bytes, 1, TAG_THERE).await?;
                    self.client.recv(at, bytes, 1, TAG_BACK).await
                }
                ("pingpong", 1) => {
                    self.client.recv(at, bytes, 0, TAG_THERE).await?;
                    self.client.send(at, bytes, 0, TAG_BACK).await
                }
                _ => Ok(()),
            }
        }
    }

    /// As bench/rank_stream_bench.cc: messages from rank 0 to rank 1, four under way. One row holds the time of a round
    /// divided by its messages.
    async fn stream(&self, bytes: usize) -> Result<()> {
        let count = (STREAM_BYTES / bytes).clamp(8, 2000);
        let mut buffers = vec![vec![1u8; bytes]; STREAM_UNDER_WAY];
        let mut seconds = Vec::new();
        for _ in 0..STREAM_ROUNDS {
            self.client.barrier().await?;
            let begin = Instant::now();
            if self.rank() < 2 {
                let lanes = buffers.iter_mut().enumerate();
                let all = lanes.map(|(lane, buffer)| self.lane(lane, count, buffer)).collect::<Vec<_>>();
                for each in join(all).await {
                    each?;
                }
            }
            self.client.barrier().await?;
            seconds.push(begin.elapsed().as_secs_f64() / count as f64);
        }
        if self.rank() == 0 {
            self.tell("stream", bytes, &mut seconds, 0.0);
        }
        Ok(())
    }

    async fn lane(&self, lane: usize, count: usize, buffer: &mut [u8]) -> Result<()> {
        let (at, bytes, tag) = (buffer.as_mut_ptr() as u64, buffer.len(), TAG_STREAM + lane as u32);
        for _ in (lane..count).step_by(STREAM_UNDER_WAY) {
            // SAFETY: `buffer` is borrowed until each call has returned.
            unsafe {
                match self.rank() {
                    0 => self.client.send(at, bytes, 1, tag).await?,
                    _ => self.client.recv(at, bytes, 0, tag).await?,
                }
            }
        }
        Ok(())
    }

    async fn all(&self, ops: &str, sizes: &[usize]) -> Result<()> {
        for op in ops.split(',') {
            match op {
                "open" if self.rank() == 0 => self.tell("open", 0, &mut [self.opened], 0.0),
                "open" => {}
                "barrier" => self.run("barrier", 0).await?,
                _ => {
                    for &bytes in sizes {
                        if op == "stream" { self.stream(bytes).await? } else { self.run(op, bytes).await? }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Runs all of them at once, within this task.
async fn join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(done.iter_mut()).filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn open(rank: u32, size: u32, seed: SocketAddr) -> Result<NexarClient> {
    let config = ClusterConfig::new(size)
        .with_bind_addr("127.0.0.1:0".parse().expect("an address"))
        .with_requested_rank(rank)
        .with_cluster_token("nexar-bench");
    let adapter = Arc::new(CpuAdapter::new());
    if rank == 0 {
        NexarClient::bootstrap_seed(seed, &config, adapter).await
    } else {
        NexarClient::bootstrap_join(seed, &config, adapter).await
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, who, rank, size, seed, scale, ops, sizes] = words.as_slice() else {
        return Err("usage: nexar-bench WHO RANK SIZE SEED_ADDRESS SCALE OPS SIZES".into());
    };
    let sizes = sizes.split(',').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let begin = Instant::now();
        let client = open(rank.parse()?, size.parse()?, seed.parse()?).await?;
        let opened = begin.elapsed().as_secs_f64();
        let bench = Bench { client, who: who.clone(), scale: scale.parse()?, opened };
        bench.all(ops, &sizes).await?;
        bench.client.shutdown_with_timeout(Duration::from_secs(10)).await?;
        Ok(())
    })
}
