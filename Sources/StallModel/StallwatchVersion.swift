// Which stallwatch this is. The one place that says it; the changelog has a heading for every version without a suffix.

/// The version of the package, by semantic versioning: `-dev` is what comes before the release of that number.
package let stallwatchVersion = "0.1.0-dev"
