//! Builds the text of a tools.yaml with servers that another program knows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client_config::{ClientConfig, ConfiguredServer};

const FILE_HEADER: &str = "\
version: 1

# `toolq servers lock` asks the servers for their tools, which can be called from then on.
";

#[derive(Serialize)]
struct ServersSection<'a> {
    servers: &'a BTreeMap<String, ConfiguredServer>,
}

/// Returns the text of a tools.yaml with the servers of a configuration.
pub fn servers_tools_file(config: &ClientConfig) -> String {
    let section = ServersSection {
        servers: &config.servers,
    };
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    // Strings, lists and maps can always be written as YAML.
    let yaml = serde_saphyr::to_string_with_options(&section, options).unwrap_or_default();
    FILE_HEADER.to_owned() + &yaml
}
