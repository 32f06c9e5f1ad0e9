import StallClickHouse
import Testing

/// Goal: an address names one database, or says what is wrong with it; a password is never in it.
@Suite struct ClickHouseAddressTests {
    @Test func `all parts are read`() throws {
        let address = try ClickHouseAddress(
            "clickhouse://re%61der@db.example:9440/stalls?cluster=two%20shards&tls=1&ca-file=/etc/ca.pem&password-file=/run/p&timeout=30"
        )
        #expect(address.user == "reader")
        #expect((address.host, address.port) == ("db.example", 9440))
        #expect(address.database == "stalls")
        #expect(address.cluster == "two shards")
        #expect(address.url == "https://db.example:9440/")
        #expect((address.authorityFile, address.passwordFile) == ("/etc/ca.pem", "/run/p"))
        #expect(
            address.description
                == "clickhouse://reader@db.example:9440/stalls?cluster=two%20shards&tls=1")
        #expect(address.timeout_s == 30)
    }

    @Test(arguments: [
        ("clickhouse://hub", "http://hub:8123/"), ("clickhouse://hub/?tls=1", "https://hub:8443/"),
        ("clickhouse://[::1]:9000/x", "http://[::1]:9000/"),
        ("clickhouse://u@10.0.0.1", "http://10.0.0.1:8123/"),
    ])
    func `what is left out has a default`(text: String, url: String) throws {
        #expect(try ClickHouseAddress(text).url == url)
    }

    @Test(arguments: [
        "", "stalls.sqlite", "http://hub/", "clickhouse://", "clickhouse:///db",
        "clickhouse://a@b@c/", "clickhouse://hub:0/",
        "clickhouse://hub:65536/", "clickhouse://hub:x/", "clickhouse://hub:/",
        "clickhouse://hub/a/b", "clickhouse://[::1/",
        "clickhouse://hub/db?cluster", "clickhouse://hub/db?cluster=",
        "clickhouse://hub/db?tls=yes", "clickhouse://hub/db?x=1",
        "clickhouse://hub/db?timeout=0", "clickhouse://hub/db?timeout=1s",
        "clickhouse://hub/%4", "clickhouse://hub/%zz", "clickhouse://hub/%ff",
        "clickhouse://hub/a%0Ab", "clickhouse://u%3Ap@hub/",
        "clickhouse://h ub/", "clickhouse://hub\"/", "clickhouse://hub#/",
    ])
    func `anything else is refused`(text: String) {
        #expect(throws: ClickHouseError.self) { try ClickHouseAddress(text) }
    }

    @Test func `a password in an address is refused, and not repeated`() throws {
        let error = #expect(throws: ClickHouseError.self) {
            try ClickHouseAddress("clickhouse://user:secret@hub/db")
        }
        #expect(error?.description.contains("secret") == false)
        #expect(error?.description.contains("STALLCTL_CLICKHOUSE_PASSWORD") == true)
    }
}
