"""Gives every swift-testing test of another package the trait `.noBlocking`. No line of the tests gets another number."""

import glob
import os
import re

IMPORT = re.compile(r"^((?:@\w+ +|\w+ +)*)import Testing\b", re.MULTILINE)
ATTRIBUTE = re.compile(r"^([^\n/]*)@Test\b(\s*\()?", re.MULTILINE)
NAME = re.compile(r'\s*(#*)(?:"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*")\1')
# A package's manifest is Swift: its targets can be changed after they were declared.
MANIFEST = """
package.dependencies.append(.package(name: "stallwatch", path: "%s"))
for target in package.targets where target.type == .test {
    target.dependencies.append(.product(name: "StallTesting", package: "stallwatch"))
}
"""


def with_trait(source):
    parts, end = [], 0
    for match in ATTRIBUTE.finditer(source):
        start = match.end()
        if match[2] is None:
            insertion = "(.noBlocking)"
        elif name := NAME.match(source, start):
            # The name of the test comes first.
            start, insertion = name.end(), ", .noBlocking"
        elif re.compile(r"\s*\)").match(source, start):
            insertion = ".noBlocking"
        else:
            insertion = ".noBlocking, "
        parts += [source[end:start], insertion]
        end = start
    return IMPORT.sub(r"\1import Testing; import StallTesting", "".join(parts) + source[end:])


def patch(package, stallwatch):
    """`package` and `stallwatch` are folders. Returns the number of files that were changed."""
    with open(os.path.join(package, "Package.swift"), "a", encoding="utf-8") as manifest:
        manifest.write(MANIFEST % stallwatch)
    count = 0
    for path in glob.glob(os.path.join(package, "**/*.swift"), recursive=True):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        if not IMPORT.search(source) or not ATTRIBUTE.search(source):
            continue
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_trait(source))
        count += 1
    return count
