//! When calls start which calls wait for which others, how many run at once, and how far their starts are apart.

mod limits;
mod locks;
