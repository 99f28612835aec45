//! Group `limits`: speed after crashes, memory and speed with large rows, and the cost of an emit.

mod crash;
mod emit;
pub(crate) mod large;

use anyhow::Result;

use crate::figure::Figures;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    emit::measure(figures).await?;
    large::measure(figures).await?;
    crash::measure(figures).await
}
