// A sort that exists once. The standard library's is copied for each type of element and each order, about 3 KB in every app
// for a list that is sorted once in a stall.

/// The indexes of a list of `count` elements, in the order that `isBefore` gives two of them; equal ones keep theirs.
@inline(never)
package func sortedPlaces(_ count: Int, by isBefore: (Int, Int) -> Bool) -> [Int] {
    (0..<count).sorted(by: isBefore)
}
