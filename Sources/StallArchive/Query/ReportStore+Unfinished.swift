// Locations whose names an agent had no time to find out completely.

package import StallModel
package import StallStore

extension ReportStore {
    /// Locations that have the name of their function, but whose inlined calls are still unknown; groups depend on them.
    ///
    /// Their agent continues to look them up, unless its process has ended.
    package func unfinishedLocations() throws(StoreError) -> [CodeLocation] {
        try answer { connection in
            let reader = try StackReader(connection)
            let rows = try connection.prepare(
                """
                select id from location where detail = 0
                    and exists (select 1 from location_frame where location = location.id)
                """)
            var locations: [CodeLocation] = []
            while try rows.step() {
                let location = try reader.place(try rows.integer()).location
                if location.buildID != nil { locations.append(location) }
            }
            return locations
        }
    }
}
