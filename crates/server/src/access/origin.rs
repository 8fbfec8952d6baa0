//! Which web pages may use the server through a browser, and under which host names.
//!
//! A browser lets any page send requests to this machine and open WebSockets to it, and the server may have no users.
//! Three headers that no page can forge decide:
//!
//! - `Origin` names the page. The server answers requests of its own pages and of [`Browsers::allowed_origins`]. Such
//!   pages get the headers of CORS, so that the browser shows them the answer. Others are refused before anything runs,
//!   WebSockets and "simple" requests included: CORS alone would run those and only hide the answer.
//! - `Sec-Fetch-Site` says whether a page of another site caused the request. It decides for a GET of an image or a
//!   link, which a browser sends without `Origin`. A server that allows every origin takes such requests as well.
//! - `Host` is the name that the browser used. If a foreign name points at this machine (DNS rebinding), the requests
//!   of a foreign page count as same-origin. So a server on a loopback address accepts only loopback names and
//!   [`Browsers::allowed_hosts`]. Any other server without `allowed_hosts` accepts every name: it has TLS and users, or
//!   its operator has decided against them.
//!
//! A preflight (`OPTIONS`) is answered before authentication, because browsers send no password with it. The server
//! uses no cookies: a page has to set `Authorization` itself, so the browser may not add credentials on its own.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, HeaderName, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use mangrove_graph::{Error, Result};

/// Stands for every page in [`Browsers::allowed_origins`].
pub const ANY: &str = "*";

/// The headers that a page may send: the encodings, a password, the context of a trace.
const HEADERS: &str = "accept, authorization, content-type, traceparent, tracestate";

const METHODS: &str = "GET, POST, OPTIONS";

/// How long a browser may remember the answer to a preflight, in seconds.
const MAX_AGE_SECONDS: &str = "3600";

/// The browser's header for the relation of page and server: `same-origin`, `same-site`, `cross-site`, or `none` for a
/// request of the user.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The headers of a preflight from a page of a public site to a server in a private network.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The pages and host names by which browsers may use the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Browsers {
    /// The origins (`https://explorer.example`, `http://localhost:5173`) whose pages may use the server, beside its
    /// own; [`ANY`] for all.
    pub allowed_origins: Vec<String>,
    /// The host names, without ports, under which browsers may reach the server. An empty list means loopback names on
    /// a loopback address, and any name elsewhere.
    pub allowed_hosts: Vec<String>,
}

/// The page that sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPage {
    /// No page of another origin: a driver, a tool, or a page of this server.
    Own,
    /// A page of an allowed origin.
    Allowed(HeaderValue),
}

impl Browsers {
    /// Refuses configured origins and hosts that no header could ever equal.
    pub fn check(&self) -> Result<()> {
        for origin in self.allowed_origins.iter().filter(|origin| *origin != ANY) {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            if authority.is_none_or(|authority| authority.is_empty() || authority.contains(['/', '*', ' '])) {
                return Err(Error::invalid(format!(
                    "allowed_origins has `{origin}`, which is no origin: write a scheme and a host, with a port if \
                     it is \
                     not the scheme's, as in http://localhost:5173; or `*` for every page"
                )));
            }
        }
        match self.allowed_hosts.iter().find(|host| host.contains(['/', '*', ' ', ':'])) {
            Some(host) => Err(Error::invalid(format!(
                "allowed_hosts has `{host}`, which is no name of a host: write it without scheme and port, as in \
                 graph.example"
            ))),
            None => Ok(()),
        }
    }

    /// Returns true if pages of all origins may use the server.
    pub fn allows_any(&self) -> bool {
        self.allowed_origins.iter().any(|origin| origin == ANY)
    }

    /// The page that sent a request, or the reason to refuse it.
    pub fn page(&self, headers: &HeaderMap, is_loopback: bool) -> Result<RequestPage, String> {
        let text = |name: &HeaderName| match headers.get_all(name).iter().collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [value] => Ok(Some(value.to_str().unwrap_or("(not text)"))),
            _ => Err(format!("the request has several headers `{name}`: send one")),
        };
        let host = text(&HOST)?.unwrap_or_default();
        self.check_host(host, is_loopback)?;
        let Some(origin) = text(&ORIGIN)? else { return self.page_without_origin(text(&SEC_FETCH_SITE)?) };
        if origin.split_once("://").is_some_and(|(_, authority)| authority == host) {
            return Ok(RequestPage::Own);
        }
        let is_allowed =
            self.allows_any() || self.allowed_origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
        match headers.get(ORIGIN) {
            Some(origin) if is_allowed => Ok(RequestPage::Allowed(origin.clone())),
            _ => Err(format!("pages of `{origin}` may not use this server; the setting allowed_origins lets them")),
        }
    }

    /// The page of a request without `Origin`, which drivers, tools and older browsers send.
    fn page_without_origin(&self, site: Option<&str>) -> Result<RequestPage, String> {
        match site {
            None | Some("same-origin" | "none") => Ok(RequestPage::Own),
            Some(_) if self.allows_any() => Ok(RequestPage::Own),
            Some(site) => Err(format!(
                "a page of another site made the browser send this request (Sec-Fetch-Site: {site}); only `*` in the \
                 setting allowed_origins lets such pages use this server"
            )),
        }
    }

    fn check_host(&self, host: &str, is_loopback: bool) -> Result<(), String> {
        let takes_any = !is_loopback && self.allowed_hosts.is_empty();
        let name = host_name(host);
        if takes_any
            || is_loopback_name(name)
            || self.allowed_hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
        {
            return Ok(());
        }
        let where_ =
            if is_loopback { "answers on this machine only" } else { "answers under the names of allowed_hosts" };
        Err(format!("this server {where_}, and the request names the host `{host}`; the setting allowed_hosts lets it"))
    }
}

/// The name in `Host`, without the port. If something else than a port follows an address in brackets, all of it.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) if port.is_empty() || port.starts_with(':') => address,
        Some(_) => host,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl RequestPage {
    /// Returns true if a request only asks whether the page may send another.
    pub fn is_preflight(&self, method: &Method, headers: &HeaderMap) -> bool {
        *method == Method::OPTIONS
            && headers.contains_key(ORIGIN)
            && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// The headers that let the browser show the page an answer.
    pub fn mark(&self, headers: &mut HeaderMap) {
        // Also without a page: a cache in between must not give one page's answer to another.
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let RequestPage::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
        }
    }

    /// The headers that answer a preflight.
    pub fn permit(&self, asked: &HeaderMap, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(HEADERS));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE_SECONDS));
        if asked.contains_key(REQUEST_PRIVATE_NETWORK) {
            headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    fn browsers(origins: &[&str], hosts: &[&str]) -> Browsers {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Browsers { allowed_origins: owned(origins), allowed_hosts: owned(hosts) }
    }

    #[test]
    fn drivers_and_own_pages_may_come_in() {
        let none = Browsers::default();
        for host in ["localhost:8182", "127.0.0.1:8182", "[::1]:8182", "LOCALHOST"] {
            assert_eq!(none.page(&headers(host, None), true), Ok(RequestPage::Own), "{host}");
        }
        assert_eq!(none.page(&headers("localhost:8182", Some("http://localhost:8182")), true), Ok(RequestPage::Own));
        assert_eq!(
            none.page(&headers("graph.example:8182", Some("https://graph.example:8182")), false),
            Ok(RequestPage::Own)
        );
    }

    #[test]
    fn foreign_pages_and_rebound_names_may_not() {
        let none = Browsers::default();
        let foreign = none.page(&headers("localhost:8182", Some("https://evil.example")), true).unwrap_err();
        assert!(foreign.contains("https://evil.example"), "{foreign}");
        // If a foreign name points at this machine, the origin of the foreign page equals the host.
        for origin in [None, Some("http://evil.example:8182")] {
            let rebound = none.page(&headers("evil.example:8182", origin), true).unwrap_err();
            assert!(rebound.contains("evil.example"), "{rebound}");
        }
        none.page(&headers("localhost:8182", Some("null")), true).unwrap_err();
        // A page of this machine is another origin, too.
        none.page(&headers("localhost:8182", Some("http://localhost:5173")), true).unwrap_err();
        none.page(&HeaderMap::new(), true).unwrap_err();
    }

    #[test]
    fn what_is_allowed_is_let_in_and_nothing_like_it() {
        let some = browsers(&["http://localhost:5173", "https://explorer.example"], &["graph.example"]);
        let page = some.page(&headers("127.0.0.1:8182", Some("http://localhost:5173")), true).unwrap();
        assert_eq!(page, RequestPage::Allowed(HeaderValue::from_static("http://localhost:5173")));
        for wrong in ["http://localhost:5174", "https://localhost:5173", "https://explorer.example.evil", "null"] {
            some.page(&headers("localhost:8182", Some(wrong)), true).unwrap_err();
        }
        some.page(&headers("graph.example", None), true).unwrap();
        some.page(&headers("graph.example:8182", None), false).unwrap();
        some.page(&headers("evil.example", None), false).unwrap_err();
        let any = browsers(&["*"], &[]);
        assert!(matches!(any.page(&headers("localhost", Some("null")), true), Ok(RequestPage::Allowed(_))));
    }

    #[test]
    fn a_request_that_another_site_caused_is_refused_without_an_origin_too() {
        let caused = |site: &str| {
            let mut headers = headers("localhost:8182", None);
            headers.insert(SEC_FETCH_SITE, site.parse().unwrap());
            headers
        };
        let (none, some) = (Browsers::default(), browsers(&["https://explorer.example"], &[]));
        for site in ["cross-site", "same-site", "anything"] {
            for browsers in [&none, &some] {
                let refused = browsers.page(&caused(site), true).unwrap_err();
                assert!(refused.contains("allowed_origins"), "{refused}");
            }
            assert_eq!(browsers(&["*"], &[]).page(&caused(site), true), Ok(RequestPage::Own));
        }
        for site in ["same-origin", "none"] {
            assert_eq!(none.page(&caused(site), true), Ok(RequestPage::Own), "{site}");
        }
    }

    #[test]
    fn a_header_that_comes_twice_and_a_host_that_only_begins_well_are_refused() {
        let none = Browsers::default();
        for host in ["[::1].evil.example:80", "[::1]evil", "[::1"] {
            none.page(&headers(host, None), true).unwrap_err();
        }
        for name in [ORIGIN, HOST] {
            let mut twice = headers("localhost", Some("http://localhost"));
            twice.append(&name, "http://localhost".parse().unwrap());
            let refused = none.page(&twice, true).unwrap_err();
            assert!(refused.contains("several headers"), "{refused}");
        }
    }

    #[test]
    fn what_could_never_match_is_refused_at_the_start() {
        for wrong in ["localhost:5173", "https://a.example/", "https://*.example", "https://"] {
            let message = browsers(&[wrong], &[]).check().unwrap_err().to_string();
            assert!(message.contains(wrong) && message.contains("allowed_origins"), "{message}");
        }
        assert!(browsers(&[], &["https://a.example"]).check().unwrap_err().message().contains("allowed_hosts"));
        browsers(&["*", "http://localhost:5173"], &["graph.example"]).check().unwrap();
    }
}
