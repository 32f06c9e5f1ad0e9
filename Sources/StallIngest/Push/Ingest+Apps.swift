// The apps that a store has rows of, as far as it was imported.

package import StallModel
package import StallStore

extension Ingest {
    /// The apps that a store has reports, watched time or losses of, as far as it was imported.
    ///
    /// **Cost:** grows with the reports of the store: remember the answer.
    package func apps(of store: UniqueID) throws(StoreError) -> Set<String> {
        try StoreError.catching(path: file.path) {
            let rows = try file.connection.prepare(
                """
                with own (id) as (select id from source where store = ?1 or origin = ?1),
                    used (loop) as (
                        select loop from report where source in own
                        union select loop from exposure where source in own
                        union select loop from suppression where source in own)
                select app from process_run where id in (select run from loop where id in used)
                union select app from loss join process_run on process_run.id = loss.run
                    where source in own
                """)
            try rows.bind(store)
            var apps: Set<String> = []
            while try rows.step() { apps.insert(rows.text()) }
            return apps
        }
    }
}
