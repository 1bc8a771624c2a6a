#![allow(clippy::unwrap_used)]
use fbdt::*;
use tokio::io::AsyncWriteExt;
fn cpu() -> f64 { let s = std::fs::read_to_string("/proc/self/stat").unwrap(); let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect(); (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0 }
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let plain = a.get(1).is_some_and(|x| x == "plain");
    if a[0] == "serve" {
        let dir = tempfile::tempdir().unwrap();
        let state = ServerState::open(dir.path().join("s")).unwrap();
        let c = state.new_credential("x", CredentialLimits::default()).unwrap();
        let mut cfg = ServerConfig::new(state, vec!["127.0.0.1:0".parse().unwrap()]); cfg.insecure_plaintext = plain;
        let mut l = Listener::bind(cfg).await.unwrap();
        std::fs::write("/tmp/scratch.link.tmp", l.link(&c).to_string_with_secret()).unwrap();
        std::fs::rename("/tmp/scratch.link.tmp", "/tmp/scratch.link").unwrap();
        let s = l.accept().await.unwrap();
        let mut st = s.accept_stream().await.unwrap();
        let mut n = 0u64; let t = std::time::Instant::now(); let c0 = cpu();
        while let Some(b) = st.read_chunk(usize::MAX).await.unwrap() { n += b.len() as u64; }
        let e = t.elapsed().as_secs_f64();
        println!("rx {:.2} Gbit/s cpu {:.2} s in {:.2} s = {:.2} cores; cpu s per GB {:.3}", n as f64 * 8e-9 / e, cpu() - c0, e, (cpu() - c0) / e, (cpu() - c0) / (n as f64 * 1e-9));
        st.shutdown().await.unwrap(); s.closed().await;
    } else {
        let n: u8 = a.get(2).map_or(2, |x| x.parse().unwrap());
        let mut cfg = ClientConfig::new(std::fs::read_to_string("/tmp/scratch.link").unwrap().parse().unwrap()); cfg.insecure_plaintext = plain;
        cfg.paths = (1..=n).map(|i| PathSpec { name: format!("p{i}"), local: LocalBinding::Address([127, 0, 0, i].into()), server: None }).collect();
        let s = connect(cfg).await.unwrap();
        let mut st = s.open_stream(Class::Background).await.unwrap();
        let b = vec![5u8; 256 << 10]; let t = std::time::Instant::now(); let c0 = cpu();
        let mut sent = 0u64;
        while t.elapsed().as_secs_f64() < 2.5 { st.write_all(&b).await.unwrap(); sent += b.len() as u64; }
        st.shutdown().await.unwrap(); while st.read_chunk(1).await.unwrap().is_some() {}
        let e = t.elapsed().as_secs_f64();
        println!("tx {:.2} Gbit/s {:.2} cores; cpu s per GB {:.3}", sent as f64 * 8e-9 / e, (cpu() - c0) / e, (cpu() - c0) / (sent as f64 * 1e-9));
        for p in s.stats().paths { println!("{} new {} MB, redundant {} MB, susp {} why {:?}", p.name, p.new_bytes >> 20, p.redundant() >> 20, p.suspected, p.why_idle); }
        s.close(0, "").await;
    }
}
