//! Redirects: none, or to the same origin and not for ever.

use toolq_core::types::Ending;

use crate::server::{Act, Server, response};

/// FAULTS 95: no redirects; where declared, only to the same origin and not for ever.
#[test]
fn redirects_stay_where_they_are() {
    let to = |place: &str| {
        Act::say(&response(
            &format!("302 Found\r\nlocation: {place}"),
            "moved",
        ))
    };
    let good = Act::say(&response("200 OK", "there"));
    let none = Server::new(&[to("/next"), good.clone()]);
    assert_eq!(
        none.get("/").run().outcome().ending(),
        Some(Ending::Http(302))
    );
    let one = Server::new(&[to("/next"), good.clone()]);
    let ran = one
        .get("/")
        .http_backing(|backing| backing.redirects = 1)
        .run();
    assert_eq!(ran.text(), "there");
    assert!(one.heard()[1].starts_with("GET /next "));
    let looping = Server::new(&[to("/")]);
    let ran = looping
        .get("/")
        .http_backing(|backing| backing.redirects = 3)
        .run();
    assert_eq!(
        (ran.outcome().ending(), looping.heard().len()),
        (Some(Ending::Http(302)), 4)
    );
    let elsewhere = Server::new(&[good]);
    let away = Server::new(&[to(&elsewhere.url)]);
    let ran = away
        .get("/")
        .http_backing(|backing| backing.redirects = 3)
        .run();
    assert_eq!(
        (ran.outcome().ending(), elsewhere.heard().len()),
        (Some(Ending::Http(302)), 0)
    );
}

/// FAULTS 95: every place that is not the same origin is left alone, whatever the scheme.
#[test]
fn other_places_are_not_followed() {
    let elsewhere = Server::saying(&response("200 OK", "stolen"));
    let port = elsewhere.port();
    for place in [
        elsewhere.url.clone(),
        format!("//127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://user:pass@127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "file:///etc/passwd".to_owned(),
        "ftp://127.0.0.1/".to_owned(),
        "javascript:alert(1)".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1".to_owned(),
        String::new(),
    ] {
        for status in ["301", "302", "303", "307", "308"] {
            let head = format!("{status} Moved\r\nlocation: {place}");
            let server = Server::new(&[
                Act::say(&response(&head, "moved")),
                Act::say(&response("200 OK", "same")),
            ]);
            let asked = server
                .get("/")
                .http_backing(|backing| backing.redirects = 3);
            let ran = asked.run();
            // An empty location is the same resource.
            let expected = if place.is_empty() {
                200
            } else {
                status.parse().unwrap()
            };
            assert_eq!(
                ran.outcome().ending(),
                Some(Ending::Http(expected)),
                "{status} {place}"
            );
        }
    }
    assert!(elsewhere.heard().is_empty());
}

/// FAULTS 95: a POST is sent again only where it was declared that redirects are followed, and only to the same server;
/// 301 and 302 make it a GET, as everywhere.
#[test]
fn a_post_is_sent_again_as_declared() {
    for (status, redirects, method, body) in [
        ("307", 0, None, ""),
        ("308", 0, None, ""),
        ("307", 1, Some("POST"), r#"{"n":1.00}"#),
        ("308", 1, Some("POST"), r#"{"n":1.00}"#),
        ("302", 1, Some("GET"), ""),
        ("303", 1, Some("GET"), ""),
    ] {
        let moved = format!("{status} Moved\r\nlocation: /next");
        let server = Server::new(&[
            Act::say(&response(&moved, "")),
            Act::say(&response("200 OK", "")),
        ]);
        let asked = server
            .post()
            .http_backing(|backing| backing.redirects = redirects);
        asked.run();
        let heard = server.heard();
        let Some(method) = method else {
            assert_eq!(heard.len(), 1);
            continue;
        };
        assert!(
            heard[1].starts_with(&format!("{method} /next ")),
            "{status}"
        );
        assert!(heard[1].ends_with(&format!("\r\n\r\n{body}")), "{status}");
    }
}
