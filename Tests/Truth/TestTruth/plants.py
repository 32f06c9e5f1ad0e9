"""The tests of HangTests, and what their sources name of them."""

import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


class Plant:
    def __init__(self, name, file, line):
        self.name, self.file, self.line = name, file, line
        self.kind = self.place = None
        self.has_inner_task = False


def planted():
    """Each test of HangTests with the lines that its source names."""
    plants, marks = {}, []
    for path in sorted(glob.glob(HERE + "/Tests/HangTests/*.swift")):
        current = None
        for number, text in enumerate(open(path, encoding="utf-8"), 1):
            test = re.match(r"@Test func (\w+)\(", text)
            if test:
                current = plants[test[1]] = Plant(test[1], path, number)
            if re.search(r"began\(\"\w+\.inside\"\)", text):
                current.has_inner_task = True
            mark = re.search(r"// hangs: (blocked|suspended)(?: \((\w+)\))?$", text)
            if mark:
                marks.append((mark[2] or current.name, mark[1], (path, number)))
    for name, kind, place in marks:
        plants[name].kind, plants[name].place = kind, place
    return {name: plant for name, plant in plants.items() if plant.kind}
