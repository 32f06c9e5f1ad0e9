import StallModel
import TestSupport
import Testing

@testable import StallAnalysis

/// Goal: a framework that a server links is never taken for the app's code, whatever it is statically linked into.
/// Method: the library modules of the packages that servers use most, by the targets of their public repositories'
/// manifests as of November 2026, test helpers included, which tests of an app link.
@Suite struct ServerModuleTests {
    static let packages = [
        "apple/swift-nio": """
        NIO NIOCore NIOPosix NIOEmbedded NIOConcurrencyHelpers NIOFoundationCompat NIOHTTP1 NIOTLS NIOWebSocket NIOFS
        NIOFoundationEssentialsCompat NIOFSFoundationCompat NIOFileSystem NIOTestUtils _NIOBase64 _NIOConcurrency
        _NIODataStructures _NIOFileSystem _NIOFileSystemFoundationCompat
        """,
        "apple/swift-nio-extras": """
        NIOCertificateHelpers NIOCertificateReloading NIOExtras NIOHTTPCompression NIOHTTPResponsiveness NIOHTTPTypes
        NIOHTTPTypesHTTP1 NIOHTTPTypesHTTP2 NIONFS3 NIOResumableUpload NIOSOCKS
        """,
        "apple/swift-nio-http2": "NIOHPACK NIOHTTP2", "apple/swift-nio-ssl": "NIOSSL",
        "apple/swift-nio-ssh": "NIOSSH",
        "apple/swift-nio-transport-services": "NIOTransportServices",
        "apple/swift-log": "Logging InMemoryLogging",
        "apple/swift-metrics": "Metrics CoreMetrics MetricsTestKit",
        "apple/swift-distributed-tracing":
            "Tracing Instrumentation InMemoryTracing ServiceContextModule",
        "apple/swift-collections": """
        Collections BasicContainers ContainersPreview BitCollections DequeModule HashTreeCollections HeapModule
        OrderedCollections
        InternalCollectionsUtilities RopeModule SortedCollections TrailingElementsModule
        """,
        "apple/swift-async-algorithms": "AsyncAlgorithms AsyncStreaming",
        "apple/swift-atomics": "Atomics", "apple/swift-algorithms": "Algorithms",
        "apple/swift-crypto": "Crypto CryptoExtras _CryptoExtras CryptoBoringWrapper",
        "apple/swift-certificates": "X509 _CertificateInternals", "apple/swift-asn1": "SwiftASN1",
        "apple/swift-http-types": "HTTPTypes HTTPTypesFoundation",
        "apple/swift-configuration":
            "Configuration ConfigurationTesting ConfigurationTestingInternal",
        "apple/swift-protobuf":
            "SwiftProtobuf SwiftProtobufPluginLibrary SwiftProtobufTestHelpers",
        "apple/swift-openapi-runtime": "OpenAPIRuntime",
        "swift-server/swift-openapi-async-http-client": "OpenAPIAsyncHTTPClient",
        "swift-server/swift-openapi-hummingbird": "OpenAPIHummingbird",
        "vapor/swift-openapi-vapor": "OpenAPIVapor",
        "swift-server/async-http-client": "AsyncHTTPClient",
        "swift-server/swift-service-lifecycle":
            "ServiceLifecycle ServiceLifecycleTestKit UnixSignals ConcurrencyHelpers",
        "swift-server/swift-prometheus": "Prometheus", "swift-otel/swift-otel": "OTel",
        "swift-server/swift-kafka-client": "Kafka KafkaFoundationCompat",
        "swift-server/RediStack": "RediStack RESP3 RedisTypes RediStackTestUtils",
        "valkey-io/valkey-swift":
            "Valkey ValkeyBloom ValkeyConnectionPool _ValkeyConnectionPool ValkeyJSON ValkeySearch",
        "grpc/grpc-swift": "GRPC GRPCReflectionService",
        "grpc/grpc-swift-2": "GRPCCore GRPCCodeGen GRPCInProcessTransport",
        "grpc/grpc-swift-protobuf": "GRPCProtobuf",
        "grpc/grpc-swift-nio-transport": """
        GRPCNIOTransportCore GRPCNIOTransportHTTP2 GRPCNIOTransportHTTP2Posix
        GRPCNIOTransportHTTP2TransportServices
        """,
        "grpc/grpc-swift-extras":
            "GRPCHealthService GRPCOTelTracingInterceptors GRPCReflectionService GRPCServiceLifecycle",
        "hummingbird-project/hummingbird": """
        Hummingbird HummingbirdCore HummingbirdHTTP2 HummingbirdRouter HummingbirdTLS HummingbirdTesting
        """,
        "hummingbird-project/hummingbird-auth":
            "HummingbirdAuth HummingbirdBasicAuth HummingbirdBcrypt HummingbirdOTP HummingbirdAuthTesting",
        "hummingbird-project/hummingbird-websocket":
            "HummingbirdWebSocket HummingbirdWSClient HummingbirdWSCompression HummingbirdWSTesting",
        "hummingbird-project/hummingbird-fluent": "HummingbirdFluent",
        "hummingbird-project/hummingbird-postgres": "HummingbirdPostgres PostgresMigrations",
        "hummingbird-project/hummingbird-redis": "HummingbirdRedis",
        "hummingbird-project/hummingbird-lambda": "HummingbirdLambda HummingbirdLambdaTesting",
        "hummingbird-project/hummingbird-compression": "HummingbirdCompression",
        "hummingbird-project/swift-websocket": "WSClient WSCompression WSCore",
        "hummingbird-project/swift-jobs": "Jobs JobsPostgres JobsValkey",
        "hummingbird-project/swift-mustache": "Mustache",
        "vapor/vapor": "Vapor VaporMacros VaporTesting XCTVapor", "vapor/fluent": "Fluent",
        "vapor/fluent-kit": "FluentKit FluentSQL FluentBenchmark XCTFluent",
        "vapor/fluent-drivers": """
        FluentPostgresDriver FluentMySQLDriver FluentSQLiteDriver FluentMongoDriver
        """,
        "vapor/sql-kit": "SQLKit SQLKitBenchmark", "vapor/postgres-kit": "PostgresKit",
        "vapor/postgres-nio":
            "PostgresNIO ConnectionPoolModule _ConnectionPoolModule _ConnectionPoolTestUtils",
        "vapor/mysql-nio": "MySQLNIO MySQLKit", "vapor/sqlite-nio": "SQLiteNIO SQLiteKit",
        "vapor/async-kit": "AsyncKit", "vapor/routing-kit": "RoutingKit",
        "vapor/console-kit": "ConsoleKit ConsoleKitCommands ConsoleKitTerminal ConsoleLogger",
        "vapor/websocket-kit": "WebSocketKit", "vapor/multipart-kit": "MultipartKit",
        "vapor/jwt": "JWT JWTKit", "vapor/leaf": "Leaf LeafKit", "vapor/redis": "Redis",
        "vapor/queues": "Queues XCTQueues QueuesRedisDriver",
        "vapor/apns": "VaporAPNS APNS APNSCore APNSURLSession",
        "orlandos-nl/MongoKitten":
            "MongoKitten MongoKittenCore MongoClient MongoCore Meow _MongoKittenCrypto BSON",
        "soto-project/soto":
            """
        SotoCore SotoXML SotoSignerV4 SotoSignerCloudFront SotoTestUtils SotoS3 SotoDynamoDB SotoSQS SotoSTS
        SotoWorkSpacesWeb SotoCognitoIdentityProvider SotoBedrockRuntime SotoSESv2 SotoElasticLoadBalancingV2 SotoLambda
        SotoSecretsManager SotoXRay
        _SotoS3Generated _SotoDynamoDBGenerated _SotoSTSGenerated _SotoCognitoIdentityGenerated INIParser
        """,
        "awslabs/swift-aws-lambda-runtime":
            "AWSLambdaRuntime AWSLambdaRuntimeCore AWSLambdaEvents AWSLambdaTesting",
        "groue/GRDB.swift": "GRDB", "stephencelis/SQLite.swift": "SQLite",
        "swift-server-community/mqtt-nio": "MQTTNIO", "swhitty/FlyingFox": "FlyingFox FlyingSocks",
        "jpsim/Yams": "Yams",
        "smithy-lang/smithy-swift": """
        ClientRuntime Smithy SmithyCBOR SmithyChecksums SmithyChecksumsAPI SmithyEventStreams
        SmithyEventStreamsAPI SmithyEventStreamsAuthAPI SmithyFormURL SmithyHTTPAPI SmithyHTTPAuth
        SmithyHTTPAuthAPI SmithyHTTPClient SmithyHTTPClientAPI SmithyIdentity SmithyIdentityAPI SmithyJSON
        SmithyReadWrite SmithyRetries SmithyRetriesAPI SmithySerialization SmithyStreams SmithySwiftNIO
        SmithyTelemetryAPI SmithyTestUtil SmithyTimestamps SmithyWaitersAPI SmithyXML
        """,
        "awslabs/aws-sdk-swift": """
        AWSClientRuntime AWSSDKCommon AWSSDKChecksums AWSSDKEventStreamsAuth AWSSDKHTTPAuth AWSSDKIdentity AWSS3
        AWSDynamoDB AWSSQS AWSSNS AWSSTS AWSSES AWSSESv2 AWSSSM AWSKMS AWSLambda AWSSecretsManager
        AWSCognitoIdentityProvider AWSBedrockRuntime AWSCloudWatchLogs AWSEventBridge AWSKinesis
        AWSApiGatewayManagementApi
        """,
        "awslabs/aws-crt-swift": "AwsCommonRuntimeKit",
        "mongodb/mongo-swift-driver": "MongoSwift MongoSwiftSync",
        "mongodb/swift-bson": "SwiftBSON",
        "lovetodream/oracle-nio": "OracleNIO", "swift-server/swift-memcache-gsoc": "Memcache",
        "apple/swift-cassandra-client": "CassandraClient", "Kitura/Swift-JWT": "SwiftJWT",
        "GraphQLSwift": "GraphQL Graphiti", "apple/swift-distributed-actors": "DistributedCluster",
        "apple/swift-nio-imap": "NIOIMAP NIOIMAPCore", "swift-server/webauthn-swift": "WebAuthn",
        "apple/swift-async-dns-resolver": "AsyncDNSResolver",
        "hummingbird-project, version 1":
            "HummingbirdFoundation HummingbirdJobs HummingbirdJobsRedis HummingbirdMustache",
        "sliemeobn/elementary": "Elementary HummingbirdElementary VaporElementary",
        "orlandos-nl/Citadel": "Citadel", "funcmike/rabbitmq-nio": "AMQPClient AMQPProtocol",
        "vapor-community/leaf-markdown": "LeafMarkdown",
        "open-telemetry/opentelemetry-swift": """
        OpenTelemetryApi OpenTelemetrySdk OpenTelemetryProtocolExporterCommon OpenTelemetryProtocolExporterHttp
        OpenTelemetryProtocolExporterGrpc OTelSwiftLog SwiftMetricsShim PrometheusExporter PersistenceExporter
        InMemoryExporter BaggagePropagationProcessor
        """,
    ]

    private func frameClass(_ function: String) -> FrameClass {
        ClassifiedFrame(frames(function)[0], rules: .builtIn).frameClass
    }

    @Test(arguments: packages.keys.sorted())
    func `a package's modules are not the app's`(package: String) throws {
        let modules = try #require(Self.packages[package]).split(whereSeparator: \.isWhitespace)
        #expect(!modules.isEmpty)
        for module in modules {
            #expect(frameClass("\(module)/serve()") == .system, "\(module)")
        }
    }

    @Test(arguments: [
        "App", "VaporShop", "NIOShop", "MyJobs", "Routes", "FluentModels", "Models", "SotoApp",
        "Sotoyama", "AWSTools",
        "SmithyShop", "_SotoShop",
    ])
    func `a module of another name is the app's`(module: String) {
        #expect(frameClass("\(module)/serve()") == .app)
    }

    /// Goal: the C of these packages is compiled into the app, and its functions have no module.
    @Test(arguments: [
        ("c_nio_llhttp_execute", FrameClass.system), ("CNIOBoringSSL_SSL_read", .system),
        ("CCryptoBoringSSL_EC_POINT_mul", .system), ("rd_kafka_poll", .system),
        ("sqlite_nio_sqlite3_step", .system), ("c_hb_bcrypt_hashpass", .system),
        ("swiftahc_cshims_strptime", .system), ("Keccak_HashUpdate", .system),
        ("KeccakP1600_Permute_24rounds", .system), ("Soto_XML_ParseBuffer", .system),
        ("decode_frame", .app), ("KeccakF1600", .app), ("Keccak::Permute(int)", .app),
        ("Soto_sync", .app),
        ("CNIOHelper_run", .app), ("CGRPCThing", .app),
    ])
    func `so it is by its names`(function: String, expected: FrameClass) {
        let frame = Frame(function, symbol: function, image: "/app/shop")
        #expect(ClassifiedFrame(frame, rules: .builtIn).frameClass == expected)
    }

    /// Goal: what debug information assigns to the app is the app's, whatever it is called; what it assigns to a
    /// package that is checked out is not.
    @Test(arguments: [
        "Keccak_HashUpdate", "CNIOLinux_poll", "Soto_XML_Parse", "c_nio_llhttp_execute",
        "sqlite_nio_sqlite3_step",
    ])
    func `a function of the app's own sources is the app's`(function: String) {
        func frameClass(file: String?) -> FrameClass {
            var frame = Frame(function, symbol: function, image: "/app/shop")
            frame.file = file
            return ClassifiedFrame(frame, rules: .builtIn).frameClass
        }
        #expect(frameClass(file: "/src/shop/Sources/CShop/keccak.c") == .app)
        #expect(frameClass(file: nil) == .system)
        let packages = [
            "/src/shop/.build/checkouts", "/home/ci/DerivedData/shop/SourcePackages/checkouts",
        ]
        for package in packages {
            #expect(frameClass(file: package + "/swift-nio/Sources/CNIOLinux/shim.c") == .system)
        }
        #expect(frameClass(file: "/src/checkouts/Sources/CShop/keccak.c") == .app)
    }

    /// Method: types of the app that are called as the packages' C is.
    @Test(arguments: ["Keccak256.hash()", "CNIOThing.run()", "Soto_sync()", "Keccak_HashUpdate()"])
    func `a Swift function of the app is the app's whatever it is called`(function: String) {
        #expect(frameClass("Shop/\(function)") == .app)
    }

    @Test func `a stall in a query is named by the handler that made it`() {
        let stack =
            "usleep <- PostgresNIO/PostgresConnection.query(_:) <- FluentPostgresDriver/run() <- FluentKit/QueryBuilder.all() <- OrderController.list(req:) <- RoutingKit/respond() <- Vapor/respond(to:) <- stall_jobs_run <- start_thread"
        #expect(signature(stack).keyFrames == ["OrderController.list(req:)"])
    }
}
