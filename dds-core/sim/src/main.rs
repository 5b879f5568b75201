//! temp
use spindle_dds_sim::*;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    if a.len() == 1 { println!("{:#?}", LifePlan::draw(a[0])); println!("{:?}", live(&LifePlan::draw(a[0]))); return; }
    let (mut v, mut views, mut d, mut c, mut g, mut m) = (0, 0, 0, 0, 0, 0);
    for seed in a[0]..a[1] {
        let r = std::panic::catch_unwind(|| live(&LifePlan::draw(seed)));
        match r {
            Ok(Ok(r)) => { views += r.views; d += r.delivered; c += r.committed; g += r.gone; m += r.members; }
            Ok(Err(e)) => { v += 1; println!("{e}"); }
            Err(_) => { v += 1; println!("seed {seed}: PANIC"); }
        }
    }
    println!("violations {v} views {views} delivered {d} committed {c} gone {g} of {m}");
}
