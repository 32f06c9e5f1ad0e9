// The only definition of the version. The changelog has a heading for every version without a suffix.

/// The version of the package, by semantic versioning: `-dev` precedes the release of that number.
package let stallwatchVersion = "0.1.0-dev"
