//! Renders tools as the declarations that each API expects, or as a prompt section.

mod declarations;

pub use declarations::{DeclarationFormat, mcp_declaration, render_declarations};
