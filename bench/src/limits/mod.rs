//! Group `limits`: what is left of the usual speed after something went wrong.

mod crash;

use anyhow::Result;

use crate::figure::Figures;

pub(crate) async fn measure(figures: &mut Figures) -> Result<()> {
    crash::measure(figures).await
}
