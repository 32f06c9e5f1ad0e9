// Properties of a server that its answers revealed, for all that query it.

/// The known properties of a server, and of its user's permissions.
final class ServerTraits {
    /// The user's profile has `readonly = 1`: statements that come with settings are refused.
    var refusesSettings = false
    /// Why a question was not answered in all of its time. The others would not be either.
    var timeOut: ClickHouseError?
}
