//! Group `core`.

mod clean;
pub(crate) mod drain;
mod emit;
mod held;
mod latency;
pub(crate) mod sqlite;
mod wal;

use anyhow::Result;

pub(crate) use drain::lanes;

use crate::figure::Figures;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    drain::measure(figures).await?;
    sqlite::measure(figures).await?;
    wal::measure(figures).await?;
    emit::measure(figures).await?;
    clean::measure(figures).await?;
    latency::measure(figures).await?;
    held::measure(figures).await
}
