//! Rights that are taken away while their user is at work.

use std::time::Duration;

use mangrove_server::Access;

use crate::common::PATIENCE;
use crate::common::users_server::UsersServer;

/// Longer than the server takes to read a users file that has changed.
const NOTICED: Duration = Duration::from_millis(2_500);

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_user_who_may_not_write_anymore_commits_nothing() {
    let served = UsersServer::start("commit", |_| {}).await;
    let mut wim = served.connect("wim").await;
    for session in ["bytecode", "script", "reading"] {
        wim.session_eval(session, "g.inject(1)").await.assert_code(200);
    }
    for session in ["bytecode", "script"] {
        wim.session_eval(session, "g.addV('x').iterate()").await.assert_code(204);
    }
    served.change_users(|users| users.grant("wim", "books", Some(Access::Read)).unwrap());
    tokio::time::sleep(NOTICED).await;
    let refused = wim.session_end("bytecode", "commit").await;
    refused.assert_fails(403, "needs the role write on the graph `books`");
    refused.assert_fails(403, "the transaction was rolled back");
    wim.session_eval("script", "g.tx().commit()").await.assert_fails(403, "needs the role write");
    // The refused transaction is over. A transaction that only read may end as it likes.
    wim.session_end("bytecode", "commit").await.assert_code(204);
    wim.session_end("reading", "commit").await.assert_code(204);
    assert_eq!(wim.eval("g.V().count()").await.values(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_is_removed_loses_connections_and_what_they_had_begun() {
    let served = UsersServer::start("removed", |_| {}).await;
    let (mut ada, mut wim) = (served.connect("ada").await, served.connect("wim").await);
    wim.session_eval("s", "g.addV('x').iterate()").await.assert_code(204);
    wim.send_eval("", "g.inject(1).repeat(identity()).until(is(2))", &[]).await;
    served.change_users(|users| users.remove("wim").unwrap());
    let farewell =
        tokio::time::timeout(PATIENCE, wim.farewell()).await.expect("the connection is closed by the server");
    assert!(farewell.unwrap().contains("the user `wim` was removed"), "it says why");
    let running = "g.call('mangrove.queries').where(select('user').is('wim')).count()";
    for look in [running, "g.V().count()"] {
        let has_ended = async {
            while ada.eval(look).await.values() != [0] {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, has_ended).await.expect(look);
    }
}

/// A user cannot get another share of the executors with the text of a query.
#[tokio::test(flavor = "multi_thread")]
async fn only_an_administrator_names_a_tenant() {
    let served = UsersServer::start("tenant", |_| {}).await;
    let (mut ada, mut wim) = (served.connect("ada").await, served.connect("wim").await);
    let count = |with: &str, tenant: &str| {
        let has = |key: &str, value: &str| format!("where(select('{key}').is({value}))");
        let (tenant, weight) = (has("tenant", &format!("'{tenant}'")), has("tenant_weight", "100"));
        format!("g{with}.call('mangrove.queries').{tenant}.{weight}.count()")
    };
    let named = ".with('tenant', 'reports')";
    assert_eq!(ada.eval(&count(named, "tenant/reports")).await.values(), [1]);
    assert_eq!(ada.eval(&count("", "user/ada")).await.values(), [1]);
    assert_eq!(wim.eval(&count("", "user/wim")).await.values(), [1]);
    wim.eval(&count(named, "tenant/reports")).await.assert_fails(403, "needs the role admin on all graphs (`*`)");
    wim.eval(&count(named, "tenant/reports")).await.assert_fails(403, "counts for the tenant user/wim");
    wim.eval("g.with('tenant', '').V()").await.assert_fails(597, "of 1 to 128 bytes");
}
