extension Int64 {
    /// The whole number that is nearest to a real one; zero for what is no number.
    package init(nearest value: Double) {
        let rounded = value.rounded()
        self =
            rounded.isNaN
            ? 0 : Int64(exactly: rounded) ?? (rounded < 0 ? .min : .max)
    }
}
