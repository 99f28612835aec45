//! Plots of the measurements, for the docs.

use std::path::Path;

use anyhow::{Result, anyhow};
use plotters::prelude::*;

const SIZE: (u32, u32) = (720, 400);
const OURS: RGBColor = RGBColor(0x1f, 0x6f, 0xb4);
const OTHER: RGBColor = RGBColor(0xd9, 0x77, 0x06);
/// The width of a column of the histogram, in milliseconds.
const COLUMN: f64 = 0.25;
/// The end of the histogram: longer times are in its last column.
const LONGEST: f64 = 12.0;

/// Messages per second against the number of pending messages.
pub(crate) fn drain_rate(folder: &Path, rates: &[(u64, f64)]) -> Result<()> {
    let path = folder.join("drain_rate.svg");
    let first = rates.first().map_or(1.0, |(pending, _)| *pending as f64);
    let last = rates.last().map_or(10.0, |(pending, _)| *pending as f64);
    let top = rates.iter().map(|(_, rate)| rate / 1e3).fold(0.0, f64::max) * 1.2;
    let picture = SVGBackend::new(&path, SIZE).into_drawing_area();
    drawn(picture.fill(&WHITE))?;
    let mut chart = drawn(
        ChartBuilder::on(&picture)
            .caption("Drain rate against the backlog", ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d((first * 0.8..last * 1.25).log_scale(), 0.0..top),
    )?;
    drawn(
        chart
            .configure_mesh()
            .x_desc("messages pending")
            .y_desc("thousand messages per second")
            .x_label_formatter(&|pending| count(*pending))
            .draw(),
    )?;
    let points = || rates.iter().map(|(pending, rate)| (*pending as f64, rate / 1e3));
    drawn(chart.draw_series(LineSeries::new(points(), OURS.stroke_width(2))))?;
    drawn(chart.draw_series(points().map(|point| Circle::new(point, 4, OURS.filled()))))?;
    drawn(picture.present())
}

/// The distribution of the latency from commit to sink.
pub(crate) fn latencies(folder: &Path, wakes_in_process: &[f64], polled: &[f64]) -> Result<()> {
    let path = folder.join("latency.svg");
    let (wakes_in_process, polled) = (shares(wakes_in_process), shares(polled));
    let top = wakes_in_process.iter().chain(&polled).copied().fold(0.0, f64::max) * 1.15;
    let picture = SVGBackend::new(&path, SIZE).into_drawing_area();
    drawn(picture.fill(&WHITE))?;
    let mut chart = drawn(
        ChartBuilder::on(&picture)
            .caption("From commit to sink, 300 messages per second", ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..LONGEST, 0.0..top),
    )?;
    drawn(
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("milliseconds")
            .y_desc("% of the messages")
            .draw(),
    )?;
    for (name, shares, colour) in [("woken", &wakes_in_process, OURS), ("polling only", &polled, OTHER)] {
        let columns = shares.iter().enumerate().map(|(at, share)| {
            let from = at as f64 * COLUMN;
            Rectangle::new([(from, 0.0), (from + COLUMN, *share)], colour.mix(0.6).filled())
        });
        drawn(chart.draw_series(columns))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.mix(0.6).filled()));
    }
    drawn(
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw(),
    )?;
    drawn(picture.present())
}

/// Per cent of the values in each column.
fn shares(values: &[f64]) -> Vec<f64> {
    let columns = (LONGEST / COLUMN) as usize;
    let mut shares = vec![0.0; columns];
    for value in values {
        let at = ((value / COLUMN) as usize).min(columns - 1);
        shares[at] += 100.0 / values.len() as f64;
    }
    shares
}

fn count(number: f64) -> String {
    match number {
        number if number >= 1e6 => format!("{} million", number / 1e6),
        number => format!("{} thousand", number / 1e3),
    }
}

/// The library's errors borrow their cause, so keep only the text.
fn drawn<T, E: std::error::Error>(result: Result<T, E>) -> Result<T> {
    result.map_err(|error| anyhow!("cannot draw a plot: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_show_what_they_are_given() {
        let folder = tempfile::tempdir().unwrap();
        drain_rate(folder.path(), &[(10_000, 150_000.0), (10_000_000, 140_000.0)]).unwrap();
        latencies(folder.path(), &[0.1, 0.3, 99.0], &[5.0]).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let rates = read("drain_rate.svg");
        assert!(
            rates.contains("messages pending") && rates.contains("10 million"),
            "{rates}"
        );
        assert!(rates.matches("<circle").count() == 2, "{rates}");
        let latency = read("latency.svg");
        assert!(
            latency.contains("polling only") && latency.contains("% of the messages"),
            "{latency}"
        );
        assert_eq!(shares(&[0.1, 0.3, 99.0, 99.0])[(LONGEST / COLUMN) as usize - 1], 50.0);
    }
}
