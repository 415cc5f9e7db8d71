//! The coordinator fixture.
