//! Group `limits`: what is left of the usual speed after something went wrong, what large rows take, and what an emit costs.

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
