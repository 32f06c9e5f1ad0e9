package import StallModel

extension StallReport {
    package var withoutNames: StallReport {
        var report = self
        for index in report.samples.indices { report.samples[index].frames = [] }
        for index in report.threads.indices { report.threads[index].frames = [] }
        return report
    }
}
