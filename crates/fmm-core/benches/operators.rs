//! Rates of the operators, one thread, data in the cache: `cargo bench -p fmm-core [-- FILTER]`.
//!
//! criterion's throughput in "elem/s" counts floating-point operations (see `fmm_core::cpu::workload`). The table at the end has
//! medians, GFLOP/s and the share of the peak of multiply-adds that was measured in the same run. Without `--bench`, as `cargo test`
//! calls it, each operator runs once.

use std::cell::{LazyCell, RefCell};
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput};
use fmm_core::Precision;
use fmm_core::cpu::workload::{Operator, work};
use fmm_core::math::simd::Level;
use fmm_core::workload::peak;

/// Orders near 1e-3, 1e-5, 1e-7 and 1e-10.
const ORDERS: [usize; 4] = [4, 8, 12, 20];

/// A line of the table.
struct Row {
    operator: Operator,
    order: usize,
    nanoseconds_a_unit: f64,
    rate: f64,
}

/// Times each operator if it is `timed`, and runs it once otherwise.
fn bench(criterion: &mut Criterion, precision: Precision, timed: bool) -> Vec<Row> {
    let mut rows = vec![];
    for operator in Operator::ALL {
        let orders = if operator.has_order() { &ORDERS[..] } else { &ORDERS[..1] };
        for &order in orders {
            if !operator.exists(order) {
                continue;
            }
            // A test is a process for each operator: it sets up its own only.
            let mut here = LazyCell::new(|| work(operator, order, precision).expect("it exists"));
            let mut group = criterion.benchmark_group(precision.name());
            if timed {
                group.throughput(Throughput::Elements(here.operations()));
            }
            let seconds = RefCell::new(vec![]);
            let id =
                if operator.has_order() { format!("{} p{order}", operator.name()) } else { operator.name().into() };
            group.bench_function(BenchmarkId::from_parameter(id), |bencher| {
                bencher.iter_custom(|repetitions| {
                    let start = Instant::now();
                    for _ in 0..repetitions {
                        black_box(here.run());
                    }
                    let elapsed = start.elapsed();
                    seconds.borrow_mut().push(elapsed.as_secs_f64() / repetitions as f64);
                    elapsed
                });
            });
            group.finish();
            let mut seconds = seconds.into_inner();
            seconds.sort_by(f64::total_cmp);
            // None where a filter leaves it out.
            let Some(&median) = seconds.get(seconds.len() / 2) else { continue };
            let nanoseconds_a_unit = 1e9 * median / here.units() as f64;
            rows.push(Row { operator, order, nanoseconds_a_unit, rate: here.operations() as f64 / median });
        }
    }
    rows
}

fn table(rows: &[Row], precision: Precision) {
    let peak = peak(precision, 0.3);
    println!(
        "\n{}, {}, one thread; peak of multiply-adds {:.1} GFLOP/s",
        precision.name(),
        Level::detect().name(),
        peak / 1e9
    );
    println!("| operator | p | ns | GFLOP/s | of the peak |\n|---|---|---|---|---|");
    for row in rows {
        let order = if row.operator.has_order() { row.order.to_string() } else { "-".into() };
        println!(
            "| {} | {order} | {:.2} a {} | {:.1} | {:.0} % |",
            row.operator.name(),
            row.nanoseconds_a_unit,
            row.operator.unit(),
            row.rate / 1e9,
            100.0 * row.rate / peak
        );
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let timed = std::env::args().any(|a| a == "--bench");
    let rows = [Precision::F32, Precision::F64].map(|p| (bench(&mut criterion, p, timed), p));
    criterion.final_summary();
    if timed {
        for (rows, precision) in &rows {
            table(rows, *precision);
        }
    }
}
