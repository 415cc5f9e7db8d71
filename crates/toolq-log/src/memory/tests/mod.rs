mod claims;
mod model;
mod opposite_order;
mod scenarios;
