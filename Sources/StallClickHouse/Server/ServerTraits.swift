// What answers of a server taught about it, for all that ask it.

/// What is known of a server, or of what its user may.
final class ServerTraits {
    /// The user's profile has `readonly = 1`: statements that come with settings are refused.
    var refusesSettings = false
    /// Why a question was not answered in all of its time. The others would not be either.
    var timeOut: ClickHouseError?
}
